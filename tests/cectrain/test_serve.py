"""The server answers as `cectrain correct --json` does, and refuses the rest with a reason."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from browser import CHROMIUM, Browser

from cectrain.corrector.correction import Alternative, Edit
from cectrain.corrector.corrector import Corrector
from cectrain.serve.server import Server

TEXTS = ["他己经来了。", "", "今天天气很好。💪"]


class Table:
    """A proposer that knows one error."""

    longest = most = None

    def unread(self, text):
        return [False] * len(text)

    def readable(self, _):
        return True

    def propose(self, pieces):
        other = (Alternative("以", 0.1),)
        return [
            [Edit(p.index("己"), p.index("己") + 1, "己", "已", 0.9, other)] if "己" in p else []
            for p in pieces
        ]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Corrector(Table()), 10_000) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(server, method="POST", path="/correct", body=b"", **headers):
    """Status, headers and body of one request."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    address = server.server_address[:2]
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=10)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json", **given})
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def test_corrections_are_those_of_the_corrector(server):
    """One object for each text, in order, an empty one among them."""
    status, _, body = ask(server, body=json.dumps({"texts": TEXTS}).encode())
    expected = json.loads(json.dumps([asdict(c) for c in Corrector(Table()).correct(TEXTS)]))
    assert (status, json.loads(body)) == (200, {"corrections": expected})


def test_the_page_comes_with_a_policy(server):
    """The browser is told that the page loads nothing and asks this server alone."""
    status, headers, body = ask(server, "GET", "/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"<textarea" in body


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (b"{", {}, 400, "not JSON"),
        (b"[]", {}, 400, '"texts"'),
        (b'{"texts": [1]}', {}, 400, '"texts"'),
        (b"x" * 10_001, {}, 413, "--max-bytes"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "application/json"),
        (b"{}", {"Host": "evil.example:80"}, 403, "evil.example"),
    ],
)
def test_a_bad_request_is_refused_with_a_reason(server, body, headers, status, message):
    """Each refusal has its status and a sentence, and the server answers the next request."""
    got, _, answer = ask(server, body=body, **headers)
    assert got == status
    assert message in json.loads(answer)["error"]
    assert ask(server, body=b'{"texts": []}')[0] == 200


@pytest.mark.parametrize("length", [b"", b"-1", b"\xb2", b"9" * 5000])
def test_a_length_that_is_no_number_is_refused(server, length):
    """Digits of other scripts and numbers too long to parse are none; the server goes on."""
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        host = b"Host: %s\r\n" % server.url.split("/")[2].encode()
        head = b"POST /correct HTTP/1.1\r\nContent-Type: application/json\r\n" + host
        connection.sendall(head + b"Content-Length: " + length + b"\r\n\r\n")
        assert connection.recv(1000).split()[1] == b"411"
    assert ask(server, body=b'{"texts": []}')[0] == 200


def test_another_path_is_not_found(server):
    """The message says what there is."""
    status, _, body = ask(server, "GET", "/nothing")
    assert status == 404
    assert "/correct" in json.loads(body)["error"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_people_accept_and_reject_in_a_browser(server, tmp_path, width, dark):
    """Text is corrected, one correction rejected and another text chosen; nothing leaves."""
    with Browser(tmp_path) as page:
        page.open(server.url, width, dark=dark)
        page.run("document.getElementById('text').value = '他己经来了。\\n你好。'")
        page.run("document.getElementById('go').click()")
        page.until("document.querySelectorAll('.edit').length === 1")
        assert page.run("document.getElementById('status').textContent") == "1 correction"
        chosen = "document.querySelector('.edit select').selectedOptions[0].textContent"
        assert page.run(chosen) == "已"
        page.run("document.getElementById('reject').click()")
        assert page.run(chosen) == "keep 己"
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert {url.split("/")[2] for url in page.requests} == {server.url.split("/")[2]}
