"""Server, threads and processes answer as one caller of the corrector is answered."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import itertools
import json
import os
import pickle
import platform
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode

import loopback
import pytest
import threadpoolctl
from browser import CHROMIUM, Browser
from proposers import Silent

from cecdata.common.machine import BLAS_THREADS
from cectrain.corrector.correction import Alternative, Edit, to_record
from cectrain.corrector.corrector import Corrector
from cectrain.serve.server import Server

TEXTS = ["他己经来了。", "", "今天天气很好。💪"]


class Table(Silent):
    """A proposer that knows one error."""

    def propose(self, pieces):
        other = (Alternative("以", 0.1),)
        return [
            [
                Edit(
                    start=p.index("己"),
                    end=p.index("己") + 1,
                    source="己",
                    target="已",
                    confidence=0.9,
                    alternatives=other,
                )
            ]
            if "己" in p
            else []
            for p in pieces
        ]


@contextlib.contextmanager
def running(corrector: object, **limits: float):
    """A server in a thread, which has ended where the block has."""
    with Server(("127.0.0.1", 0), corrector, **limits) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(Corrector(Table()), max_bytes=10_000) as server:
        yield server


def ask(server, method="POST", path="/correct", body=b"", wait=10, **headers):
    """Status, headers and body of one request."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    address = server.server_address[:2]
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=wait)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json", **given})
        response = connection.getresponse()
        return response.status, response.headers, response.read()


@contextlib.contextmanager
def connected(server, begin):
    """A connection on which the head of a POST and `begin` were sent."""
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        host = b"Host: %s\r\n" % server.url.split("/")[2].encode()
        head = b"POST /correct HTTP/1.1\r\nContent-Type: application/json\r\n" + host
        connection.sendall(head + begin)
        yield connection


def test_corrections_are_those_of_the_corrector(server):
    """One object for each text, in order, an empty one among them."""
    kind = "Application/JSON ; charset=utf-8"
    status, _, body = ask(server, body=json.dumps({"texts": TEXTS}).encode(), Content_Type=kind)
    expected = json.loads(json.dumps(list(map(to_record, Corrector(Table()).correct(TEXTS)))))
    assert (status, json.loads(body)) == (200, {"corrections": expected})


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (b"{", {}, 400, "not JSON"),
        (b"[]", {}, 400, '"texts"'),
        (b'{"texts": [1]}', {}, 400, '"texts"'),
        (b'{"texts": ' + b"[" * 5000, {}, 400, "not JSON"),
        (b'{"texts": [], "lm": "words"}', {}, 400, "unknown key 'lm'"),
        (b'{"texts": [], "confidence": 3}', {}, 400, "from 0 to 1"),
        (b'{"texts": [], "confidence": true}', {}, 400, "must be of type"),
        (b'{"texts": [], "protect": ["a", 1]}', {}, 400, "must hold"),
        (b'{"texts": [], "dictionary": {"a": "a"}}', {}, 400, "changes nothing"),
        (b'{"texts": [], "terms": [1]}', {}, 400, "must hold"),
        (b'{"texts": [], "protect": ["%s"]}' % (b"a" * 65), {}, 400, "at most 64 characters"),
        (b'{"texts": [], "dictionary": {"%s": ""}}' % (b"a" * 65), {}, 400, "at most 64"),
        (b'{"texts": [], "dictionary": {"a": "%s"}}' % (b"b" * 65), {}, 400, "at most 64"),
        (b'{"texts": [], "terms": ["a"]}', {}, 400, "2 to 32 characters"),
        ('{"texts": [], "terms": ["中文"]}'.encode(), {}, 400, "takes no terms"),
        (b"x" * 10_001, {}, 413, "--max-bytes"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "application/json"),
        ('{"texts": ["他己经"]}'.encode("gbk"), {}, 400, "in UTF-8"),
        (b"{}", {"Content_Encoding": "gzip"}, 415, "without Content-Encoding"),
        (b"{}", {"Content_Encoding": "deflate"}, 415, "without Content-Encoding"),
        (b"{}", {"Host": "evil.example:80"}, 403, "evil.example"),
        (b"[]", {"Host": "LocalHost:80"}, 400, "texts"),
    ],
)
def test_a_bad_request_is_refused_with_a_reason(server, body, headers, status, message):
    """Each refusal has its status and a sentence, and the server answers the next request."""
    got, _, answer = ask(server, body=body, **headers)
    assert got == status
    assert message in json.loads(answer)["error"]
    assert ask(server, body=b'{"texts": []}')[0] == 200


@pytest.mark.parametrize(
    ("fields", "body", "status"),
    [
        (b"Transfer-Encoding: chunked", b'd\r\n{"texts": []}\r\n0\r\n\r\n', b"200"),
        (b"Transfer-Encoding: chunked", b"zz\r\n\r\n", b"400"),
        (b"Content-Length: 10001\r\nExpect: 100-continue", b"", b"413"),
    ],
)
def test_a_body_is_read_as_http_asks(server, fields, body, status):
    """In chunks, but not without their sizes; nobody is told to send one that is too large."""
    with connected(server, fields + b"\r\n\r\n" + body) as connection:
        assert connection.recv(1000).split()[1] == status


def test_a_request_has_its_own_wishes(server):
    """Confidence, names and replacements hold for one request alone."""

    def target(**wishes):
        body = json.dumps({"texts": ["他己经用微信"], **wishes}).encode()
        return json.loads(ask(server, body=body)[2])["corrections"][0]["target"]

    assert target() == "他已经用微信"
    assert target(confidence=0.95) == "他己经用微信"
    assert target(protect=["己经"]) == "他己经用微信"
    assert target(dictionary={"微信": "企业微信"}) == "他已经用企业微信"
    assert target() == "他已经用微信"


@pytest.mark.parametrize(
    ("name", "body", "status", "expected"),
    [
        ("a.md", "# 他己经\r\n`他己经`\n", 200, "# 他已经\r\n`他己经`\n"),
        ("a.txt", "他己经\n", 200, "他已经\n"),
        ("a.docx", "no archive", 400, "a.docx"),
        ("a.txt", "x" * 10_001, 413, "--max-bytes"),
    ],
)
def test_a_file_comes_back_corrected(server, name, body, status, expected):
    """Its name tells the format; what cannot be read is refused with its name."""
    kind = "application/octet-stream"
    answer = ask(server, path=f"/file?name={name}", body=body.encode(), Content_Type=kind)
    assert answer[0] == status
    if status == 200:
        assert (answer[1]["Content-Type"], answer[2].decode()) == (kind, expected)
    else:
        assert expected in json.loads(answer[2])["error"]
    assert ask(server, path=f"/file?name={name}", body=body.encode())[0] == 415


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ("confidence=0.95", 200, "他己经"),
        ("confidence=0", 200, "他已经"),
        ("protect=己经", 200, "他己经"),
        ("protect=微信&protect=己经", 200, "他己经"),
        ("protect=微信&confidence=0.85", 200, "他已经"),
        ("confidence=high", 400, "confidence must be of type number: 'high'"),
        ("confidence=nan", 400, "to 1, not nan"),
        ("confidence=3", 400, "to 1, not 3"),
        ("protect=" + "己" * 65, 400, "at most 64 characters"),
        ("lm=words", 400, "unknown key 'lm': known are name, encoding, column, confidence"),
    ],
)
def test_a_file_has_its_own_wishes(server, query, status, expected):
    """Confidence and names hold for one file alone; what is unknown is refused."""
    path = f"/file?name=a.txt&{quote(query, safe='=&')}"
    kind = "application/octet-stream"
    answer = ask(server, path=path, body="他己经".encode(), Content_Type=kind)
    assert answer[0] == status
    assert expected in (answer[2].decode() if status == 200 else json.loads(answer[2])["error"])


def test_a_file_in_an_unknown_encoding_is_refused(server):
    """With what to do, in which no option of a command line is named."""
    kind = "application/octet-stream"
    answer = ask(server, path="/file?name=a.txt", body=b"\x00\xff\xfe", Content_Type=kind)
    error = json.loads(answer[2])["error"]
    assert answer[0] == 400
    assert error.startswith("a.txt is not UTF-8")
    assert "--encoding" not in error


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        ("a.csv&column=b", "a,b\n他己经,他己经\n", "a,b\n他己经,他已经\n"),
        ("a.csv&column=c", "a,b\n他己经,他己经\n", "a.csv has no column 'c'"),
        ("a.txt&encoding=utf-16-le", "他己经", "他已经"),
        ("a.txt&encoding=gb", "他己经", "gb is no encoding: name one such as gb18030"),
        ("a.parquet", "PAR1", "a.parquet is a table: name its column"),
    ],
)
def test_a_file_may_say_how_it_is_read(server, query, body, expected):
    """By its encoding and its column; what is wrong with them is said."""
    coding = "utf-16-le" if "utf-16" in query else "utf-8"
    kind = "application/octet-stream"
    answer = ask(server, path=f"/file?name={query}", body=body.encode(coding), Content_Type=kind)
    if answer[0] == 200:
        assert answer[2].decode(coding) == expected
    else:
        assert answer[0] == 400
        assert expected in json.loads(answer[2])["error"]


NAMES = ("己经", "威")


def test_the_page_sends_a_file_with_the_wishes_of_its_reader():
    """The words that are not to be changed, and the least confidence of the slider."""
    script = Path(__file__).with_name("page_answer.js")
    folder = Path(__file__).parents[2] / "cectrain" / "serve"
    words = ["node", script, folder / "page.js", folder / "page.words.json", "{}", "a b.md"]
    words.append("，".join(NAMES))
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    wishes = [("name", "a b.md"), ("confidence", "0.85"), *(("protect", name) for name in NAMES)]
    assert done.stdout == f"file?{urlencode(wishes)}\n"


def test_programs_find_health_and_a_description(server):
    """Each by a GET; elsewhere there is nothing, and nobody is sent elsewhere."""
    assert json.loads(ask(server, "GET", "/health")[2]) == {"status": "ok"}
    for method, path in (("GET", "/nothing"), ("POST", "/correct/"), ("GET", "/health/")):
        status, _, body = ask(server, method, path)
        assert (status, "/correct" in json.loads(body)["error"]) == (404, True)
    assert ask(server, "PUT")[1]["Allow"] == "POST"
    described = json.loads(ask(server, "GET", "/openapi.json")[2])
    assert "/correct" in described["paths"]
    status, headers, body = ask(server, "GET", "/", Accept_Language="zh-CN")
    assert (status, "中文纠错" in body.decode(), b"<textarea" in body) == (200, True, True)
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_fifty_clients_at_once_are_all_answered(server):
    """Five hundred requests, none reset and none refused."""
    body = json.dumps({"texts": TEXTS}).encode()
    with ThreadPoolExecutor(50) as pool:
        statuses = list(pool.map(lambda _: ask(server, body=body)[0], range(500)))
    assert statuses == [200] * 500


class Slow(Table):
    """A proposer that waits until it is let go."""

    def __init__(self):
        self.go, self.began = threading.Event(), threading.Semaphore(0)

    def propose(self, pieces):
        if pieces:
            self.began.release()
            assert self.go.wait(30)
        return super().propose(pieces)


def test_a_long_text_holds_up_nobody():
    """While one worker is busy the other answers."""
    slow = Slow()
    body = json.dumps({"texts": ["他己经来了。"]}).encode()
    with running(Corrector(slow), workers=2) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, server, body=body)
        assert slow.began.acquire(timeout=10)
        assert ask(server, body=b'{"texts": [""]}')[0] == 200
        slow.go.set()
        assert first.result()[0] == 200


def test_an_answer_of_many_edits_holds_up_nobody():
    """It is written while others are answered: a request can ask for a hundred times its size."""
    body = json.dumps({"texts": ["a" * 200] * 100, "dictionary": {"a": "b"}}).encode()
    with running(Corrector(Silent())) as server, ThreadPoolExecutor(1) as pool:
        ask(server, body=b'{"texts": ["a"], "dictionary": {"a": "b"}}')  # loads the types of edits
        large, waits = pool.submit(ask, server, body=body), []
        while not large.done():
            began = time.monotonic()
            assert ask(server, "GET", "/health")[0] == 200
            waits.append(time.monotonic() - began)
        assert len(json.loads(large.result()[2])["corrections"][-1]["edits"]) == 200
    assert max(waits) < sum(waits) * 0.7


def test_a_deadline_holds_for_the_whole_request():
    """For a body that drips, and for a correction that takes too long."""
    slow = Slow()
    with running(Corrector(slow), seconds=0.3) as server:
        body = json.dumps({"texts": ["他己经来了。"]}).encode()
        assert ask(server, body=body)[0] == 504
        slow.go.set()
        with connected(server, b"Content-Length: 100\r\n\r\n{") as connection:
            assert connection.recv(1000).split()[1] == b"504"


class Judge(loopback.Handler):
    """Tells 已 from 己 by vLLM's log-probabilities; of other texts, `server.trouble` decides."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if len(body["prompt"]) > 3:  # no probe
            self.server.asked["texts"] += 1
            if self.server.trouble == "hangs":
                self.server.released.wait(60)
            if self.server.trouble == "fails":
                return self.reply({"error": "no"}, 401)
        logs = [{"1": {"logprob": -3.0 if sign == "己" else -0.5}} for sign in body["prompt"]]
        return self.reply({"choices": [{"text": "x", "prompt_logprobs": [None, *logs[1:]]}]})


LEAVE_S = 1  # instead of the seven seconds that requests have when a server is told to end
SERVE = f"""
from cectrain.serve import server
server._LEAVE_S = {LEAVE_S}
from cectrain.cli import main
main()
"""


@contextlib.contextmanager
def served_with_judge(trouble, tmp_path, *words):
    """A server in a process of its own that asks a judge, and where it answers."""
    with loopback.serving(handler=Judge) as judge:
        judge.trouble, judge.released = trouble, threading.Event()
        judge.get = lambda handler: handler.reply({"data": [{"id": "tiny"}]})
        command = [sys.executable, "-c", SERVE, "serve", "--port", "0", "--lm", "words"]
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        process = subprocess.Popen(
            [*command, "--rescore", judge.url, *words],
            text=True,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            address = process.stdout.readline().split("/")[2]
            process.server_address = ("127.0.0.1", int(address.split(":")[1]))
            yield process, judge
        finally:
            judge.released.set()
            process.kill()
            process.communicate()


HARD = json.dumps({"texts": ["他的病情己经好转。"]}).encode()


def test_a_judge_that_hangs_takes_no_more_threads_than_stated(tmp_path):
    """Forty clients leave; the server then answers others. Where the judge fails, the client gets
    its message, and the terminal no traceback."""
    with served_with_judge("fails", tmp_path, "--workers", "2") as (server, judge):
        status, _, body = ask(server, body=HARD, wait=60)
        assert status == 502
        assert "HTTP 401" in json.loads(body)["error"]
        judge.trouble = "hangs"
        threads = Path(f"/proc/{server.pid}/task")
        before = len(list(threads.iterdir()))
        most = 0
        with ThreadPoolExecutor(40) as pool:
            asked = [pool.submit(ask, server, body=HARD, wait=1) for _ in range(40)]
            while not all(one.done() for one in asked):
                most = max(most, len(list(threads.iterdir())))
                time.sleep(0.05)
        assert {type(one.exception()) for one in asked} == {TimeoutError}
        assert most - before <= 2
        assert ask(server, body=b'{"texts": ["x"]}', wait=5)[0] == 200
        judge.trouble = ""
        assert ask(server, body=HARD, wait=60)[0] == 200
        server.terminate()
        assert "Traceback" not in server.communicate()[1]


def test_a_server_that_is_told_to_end_does_so(tmp_path):
    """Soon after what is left to requests, though a judge hangs and many wait; nobody sees a
    traceback."""
    with served_with_judge("hangs", tmp_path, "--workers", "2") as (server, judge):
        with ThreadPoolExecutor(40) as pool:
            asked = [pool.submit(ask, server, body=HARD, wait=60) for _ in range(40)]
            while not judge.asked["texts"]:
                time.sleep(0.02)
            began = time.monotonic()
            server.terminate()
            err = server.communicate()[1]
            assert time.monotonic() - began < LEAVE_S + 5
        assert {one.result()[0] for one in asked} == {503}
        assert "Traceback" not in err


def test_slow_uploads_lock_nobody_out(server):
    """A request counts from its whole body on."""
    with contextlib.ExitStack() as clients:
        for _ in range(140):
            clients.enter_context(connected(server, b"Content-Length: 100\r\n\r\n{"))
        assert ask(server, body=b'{"texts": [""]}')[0] == 200


def test_the_texts_of_a_client_that_left_are_given_up():
    """Its thread ends between two texts, before it has read all of them."""
    body = json.dumps({"texts": ["⽇"] * 100_000}).encode()
    with running(Corrector(Table()), workers=1) as server:
        with connected(server, b"Content-Length: %d\r\n\r\n%s" % (len(body), body)):
            time.sleep(0.2)
        began = time.monotonic()
        assert ask(server, body=b'{"texts": [""]}')[0] == 200
        assert time.monotonic() - began < 0.2


def test_a_request_with_terms_of_its_own_holds_up_nobody():
    """Twelve lists at once, and plain requests beside them."""
    corrector = Corrector("channel", lm="words")
    corrector.also(terms=["语雀"]).correct("好")
    with running(corrector) as server, ThreadPoolExecutor(12) as pool:
        lists = [
            ["语雀", *(f"甲词{chr(0x4E00 + 100 * n + k)}" for k in range(99))] for n in range(12)
        ]
        bodies = [
            json.dumps({"texts": ["雨雀很好用。"], "terms": terms}).encode() for terms in lists
        ]
        asked = [pool.submit(ask, server, body=body) for body in bodies]
        began = time.monotonic()
        assert ask(server, body=b'{"texts": ["x"]}')[0] == 200
        assert time.monotonic() - began < 3
        for one in asked:
            (correction,) = json.loads(one.result()[2])["corrections"]
            assert correction["target"] == "语雀很好用。"


def test_a_lone_surrogate_is_answered():
    """As JavaScript cuts an emoji; the rest of the text is corrected."""
    corrector = Corrector("channel", lm="words")
    corrector.correct("好")  # loads and compiles, which may take longer than a client waits
    with running(corrector) as server:
        texts = r'{"texts": ["今天天汽很好。", "他己经\ud83d来了。"]}'.encode()
        status, _, body = ask(server, body=texts)
        assert status == 200
        targets = [one["target"] for one in json.loads(body)["corrections"]]
        assert targets == ["今天天气很好。", "他已经\ud83d来了。"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("first", ["short", "long"])
def test_all_that_is_not_read_is_dotted(first):
    """Also where a short span lies in a long one, whichever is named first; and the page says how
    traditional text is read."""
    source = "服物態度很差。"
    spans = [(0, 1, "unreadable"), (0, 7, "unfamiliar"), (2, 3, "unreadable")]
    if first == "long":
        spans = [spans[1], spans[0], spans[2]]
    kept = [{"start": start, "end": end, "reason": reason} for start, end, reason in spans]
    answer = {"corrections": [{"source": source, "target": source, "edits": [], "kept": kept}]}
    script = Path(__file__).with_name("page_answer.js")
    folder = Path(__file__).parents[2] / "cectrain" / "serve"
    words = ["node", script, folder / "page.js", folder / "page.words.json", json.dumps(answer)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    status, dotted = json.loads(done.stdout)
    assert "".join(dotted) == source
    assert status.startswith("0 corrections; 7 characters were not looked at; ")
    assert "--script auto" in status


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
        slide = "least.value = '{}'; least.dispatchEvent(new Event('input'))"
        page.run(slide.format(95))
        assert page.run(chosen) == "keep 己"
        page.run(slide.format(85))
        assert page.run(chosen) == "已"
        page.run("getSelection().selectAllChildren(document.querySelector('.edit del'))")
        page.run("document.getElementById('protect').click()")
        page.until("document.querySelectorAll('.edit').length === 0")
        assert page.run("document.getElementById('names').value") == "己"
        root = "document.documentElement"  # its width is that beside a bar for scrolling
        assert page.run(f"{root}.scrollWidth <= {root}.clientWidth")
        assert {url.split("/")[2] for url in page.requests} == {server.url.split("/")[2]}


SENTENCES = (
    "他的病情己经好转", "我们明天在见面吧", "今天天气很好", "周未一起去公园", "这个问提无名显",
)  # fmt: skip


def texts(count):
    """Texts of different lengths, with errors."""
    draw = random.Random(7)
    return ["，".join(draw.choices(SENTENCES, k=draw.randrange(1, 4))) for _ in range(count)]


@pytest.mark.parametrize(("model", "count"), [("channel", 300), ("combined", 40)])
def test_eight_threads_get_the_answers_of_one(model, count):
    """Each thread asks for single texts and for lists, all at the same time."""
    corrector = Corrector(model, lm="words")
    asked = texts(count)
    expected = corrector.correct(asked)
    start = threading.Barrier(8)

    def answers(thread):
        start.wait()
        size = 1 + 15 * thread
        parts = (asked[first : first + size] for first in range(0, count, size))
        return list(itertools.chain.from_iterable(map(corrector.correct, parts)))

    with ThreadPoolExecutor(8) as pool:
        assert all(given == expected for given in pool.map(answers, range(8)))


def test_threads_that_ask_first_load_one_model():
    """The model is loaded once, whoever comes first."""
    corrector = Corrector("channel", lm="words")
    with ThreadPoolExecutor(4) as pool:
        assert len({id(one) for one in pool.map(lambda _: corrector.proposer, range(4))}) == 1


@pytest.mark.parametrize("settings", [{"model": "channel"}, {"rescore": "words"}])
def test_a_pickled_corrector_answers_alike(settings):
    """Before and after the models are loaded; their tables are not part of the pickle."""
    corrector = Corrector(lm="words", protect=["习小明"], **settings)
    for _ in range(2):
        held = pickle.dumps(corrector)
        assert len(held) < 2000
        assert pickle.loads(held).correct(SENTENCES) == corrector.correct(SENTENCES)


FORKS = """
import os, signal, threading, time, cectrain
(shared := cectrain.Corrector(lm="words")).correct("他己经来了")
def work(**more):
    while shared.also(**more).correct("他己经来了") and not more: pass
for more in {"terms": ["布洛芬"]}, {}, {}, {}, {}:  # a channel is made for the terms, under a lock
    threading.Thread(target=work, kwargs=more, daemon=True).start()
    time.sleep(0.1)
    if not (process := os.fork()):
        signal.alarm(30)
        os._exit(shared.also(**more).correct("他己经来了")[0].target != "他已经来了")
    assert os.waitpid(process, 0)[1] == 0
"""


def test_a_process_that_is_forked_beside_threads_answers():
    """Locks that other threads hold are free in it, and BLAS does not wait for threads for ever."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], check=True, timeout=200)


def test_products_have_one_thread_whoever_computes():
    """Whichever thread set the number first, and whichever leaves last, which restores it."""
    together = threading.Barrier(2)

    def number():
        return {
            p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"
        }

    def inside(_):
        with BLAS_THREADS.limit(1):
            together.wait(10)
            return number()

    with threadpoolctl.threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            with BLAS_THREADS.limit(1):
                assert number() == {1}
            assert list(pool.map(inside, range(2))) == [{1}, {1}]
            assert number() == {2}


def test_a_sentence_is_corrected_without_heavy_libraries():
    """The command loads none of those whose import takes longer than the rest of its start."""
    code = (
        "import sys; from cectrain.cli import cli; "
        "cli(['correct', '--lm', 'words', '他己经来了'], standalone_mode=False); "
        "print({'torch', 'transformers', 'polars', 'pyarrow', 'rich', 'scipy.linalg', 'cffi'}"
        " & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["他已经来了", "set()"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nothing to ask elsewhere")
def test_free_memory_returns_to_the_system():
    """300 MB freed below one block in use return to the system."""
    from cectrain.run import supervised as memory

    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(100_000) for _ in range(3000)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:  # the last one, at the top, keeps the heap as it is
        libc.free(block)
    before = held()
    assert memory.trim_sometimes(10)
    assert before - held() > 250
    libc.free(blocks[-1])


def test_a_program_that_runs_for_long_is_ready_at_its_start(monkeypatch):
    """`serve`, `lsp` and `mcp` compile before a client waits, and load no more than others do."""
    from cectrain.commands import serve
    from cectrain.corrector.channel.proposer import read_clauses

    told, made = [], []
    monkeypatch.setattr(read_clauses, "stop_interpreting", lambda: told.append(len(made)))
    monkeypatch.setattr(serve, "open_corrector", lambda **settings: made.append(settings))
    serve._load_compiled_corrector({"model": "channel"})
    assert (told, made) == ([0], [{"model": "channel"}])
