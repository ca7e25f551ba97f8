"""Ways in which a key or a password could reach another host, a file or a message."""

from __future__ import annotations

import pytest
from loopback import serving, status

from cecbench.systems.api import ApiSystem
from cecbench.systems.options import SystemOptions
from cecbench.systems.transport import EndpointError

KEY = "k3y-5b1f-of-nobody-77ac"
PASSWORD = "pw-90d2-of-nobody"
FAST = SystemOptions(key_variable="LEAK_TEST_KEY", retries=0, backoff_s=0.01, timeout_s=10)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """The key where a user would put it."""
    monkeypatch.setenv("LEAK_TEST_KEY", KEY)


@pytest.fixture
def rows(tmp_path):
    """A set of two sentences."""
    path = tmp_path / "own.tsv"
    path.write_text("他己经来了。\t他已经来了。\n我们在见。\t我们再见。\n", "utf-8")
    return path


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code):
    """The key and the prompt go to the host that was named, and an answer comes from it alone."""
    with serving() as elsewhere:
        port = elsewhere.server_address[1]
        target = f"http://me:{PASSWORD}@localhost:{port}/v1/chat/completions?key={KEY}"
        with serving(lambda *_: status(code, Location=target)) as server:
            with pytest.raises(EndpointError) as caught:
                list(ApiSystem(f"tiny@{server.url}", FAST).correct(["他己经来了。"]))
            assert sum(server.asked.values()) == 1
    assert elsewhere.headers_seen == []
    told = str(caught.value)
    assert f"{server.url}/chat/completions" in told
    assert f"http://localhost:{port}/v1/chat/completions" in told
    assert PASSWORD not in told
    assert KEY not in told


def test_a_redirect_to_nowhere_is_an_error_too():
    """Without an address, or with one of another kind, there is nothing to follow either."""
    for headers in ({}, {"Location": "file:///etc/passwd"}, {"Location": "http://[::1"}):
        act = status(302, **headers)
        with serving(lambda *_, a=act: a) as server, pytest.raises(EndpointError, match="302"):
            list(ApiSystem(f"tiny@{server.url}", FAST).correct(["他己经来了。"]))
