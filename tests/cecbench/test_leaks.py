"""No key or password reaches another host, a file or a message."""

from __future__ import annotations

import json
import logging
import traceback

import pytest
from loopback import says, serving, status

from cecbench.cli import cli
from cecbench.run import Settings, evaluate
from cecbench.systems.api import ApiOptions, ApiSystem
from cecdata.common.command_group import run
from cecdata.common.errors import CecError
from cecdata.models.http import EndpointError
from cecdata.models.hub import quiet_hub

KEY = "k3y-5b1f-of-nobody-77ac"
PASSWORD = "pw-90d2-of-nobody"
FAST = ApiOptions(key_variable="LEAK_TEST_KEY", retries=0, backoff_s=0.01, timeout_s=10)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """Set the key where a user would."""
    monkeypatch.setenv("LEAK_TEST_KEY", KEY)


@pytest.fixture
def rows(tmp_path):
    """Return a benchmark of two sentences."""
    path = tmp_path / "own.tsv"
    path.write_text("他己经来了。\t他已经来了。\n我们在见。\t我们再见。\n", "utf-8")
    return path


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code):
    """A redirect is an error, so that the key and the prompt reach only the named host."""
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
    """A redirect without an address, or to one of another scheme, is an error, too."""
    for headers in ({}, {"Location": "file:///etc/passwd"}):
        act = status(302, **headers)
        with serving(lambda *_, a=act: a) as server, pytest.raises(EndpointError, match="302"):
            list(ApiSystem(f"tiny@{server.url}", FAST).correct(["他己经来了。"]))


def everything(folder) -> str:
    """Return the names and contents of all files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in files)


def bench(server, rows, out, *more):
    words = ["run", "--system", f"api:tiny@{server.url}", "--benchmark", str(rows)]
    return run(cli, [*words, "--out", str(out), "--key-variable", "LEAK_TEST_KEY", *more])


OTHER = "another-secret-31c8"  # not the value of the key


@pytest.mark.parametrize(
    ("field", "code"),
    [
        (f'extra_headers={{"Authorization":"Bearer {OTHER}"}}', 0),
        (f'extra_headers=[["X-Api-Key","{OTHER}"]]', 0),
        (f'litellm_params={{"deep":[{{"api_key":"{OTHER}"}}]}}', 0),
        (f'token="{OTHER}"', 0),
        (f'base="https://me:{OTHER}@host/v1"', 0),
        (f'metadata={{"note":["for {KEY}"]}}', 0),
        (f'metadata={{"{KEY}":1}}', 0),
        (f"{KEY}=1", 0),
        # no JSON: the mistake is named, the words are not
        (f"api_key={OTHER}", 2),
        (f'extra_headers={{"Authorization":"Bearer {OTHER}"', 2),
        (KEY, 2),
    ],
)
def test_no_text_of_the_body_reaches_an_output(rows, tmp_path, capsys, field, code):
    """A text at any depth of --body is sent to the endpoint, and outputs have its digest alone."""
    out = tmp_path / "out"
    with serving() as server:
        assert bench(server, rows, out, "--body", field) == code
        sent = json.dumps(server.bodies)
    assert (OTHER in sent or KEY in sent) == (code == 0)
    said = capsys.readouterr()
    for secret in (KEY, OTHER):
        assert secret not in said.out + said.err + everything(tmp_path)


def test_numbers_of_the_body_are_recorded_as_they_are():
    """Of a text beside them the digest alone."""
    body = {"max_tokens": 5, "max_completion_tokens": 5, "top_k": 1, "deep": [{"password": KEY}]}
    system = ApiSystem("m@http://127.0.0.1:9/v1", ApiOptions(body=body))
    assert system.identity["body"] | {"deep": 0} == body | {"deep": 0}
    assert KEY not in str(system.identity)


@pytest.mark.parametrize("key", ["EMPTY", "x"])
def test_a_placeholder_is_no_secret(rows, tmp_path, monkeypatch, key):
    """A short key is a placeholder, and texts that contain it are not refused."""
    monkeypatch.setenv("LEAK_TEST_KEY", key)
    with serving() as server:
        server.misbehave = lambda *_: says("x他已经来了。")
        body = ("--body", 'note="EMPTY or x"')
        assert bench(server, rows, tmp_path / "out", *body) == 0
    assert "x他已经来了。" in everything(tmp_path / "out")  # and an answer keeps it


def test_the_key_in_place_of_a_name_is_refused(rows, tmp_path, capsys):
    """The key as a model's name, in the URL or as a variable's name is refused, not repeated."""
    with serving() as server:
        more = ["--benchmark", str(rows), "--out", str(tmp_path / "out"), "--key-variable"]
        for system, variable in (
            (f"{KEY}@{server.url}", "LEAK_TEST_KEY"),
            (f"m@{server.url}/{KEY}", "LEAK_TEST_KEY"),
            (f"m@{server.url}", KEY),
        ):
            assert run(cli, ["run", "--system", f"api:{system}", *more, variable]) == 2
        assert server.headers_seen == []
    said = capsys.readouterr()
    assert KEY not in said.out + said.err + everything(tmp_path)


@pytest.mark.parametrize("key", ["k3y-one-line\nk3y-two", "k3y-密钥-of-nobody", "k3y with a gap"])
def test_a_key_that_no_header_can_hold(rows, tmp_path, monkeypatch, capsys, key):
    """A key that no header can hold is refused, and the message names only its variable."""
    monkeypatch.setenv("LEAK_TEST_KEY", key)
    with serving() as server:
        assert bench(server, rows, tmp_path / "out") == 2
    said = capsys.readouterr()
    assert "LEAK_TEST_KEY" in said.err
    assert "k3y" not in said.out + said.err


DECLINED = {"error": {"code": "content_filter", "message": f"declined for {KEY}"}}


@pytest.mark.parametrize(
    "answer",
    [
        says(f"改正后：他已经来了。\n{KEY}"),
        lambda handler: handler.reply(DECLINED, 400),
    ],
    ids=["model", "filter"],
)
def test_an_answer_that_holds_the_key(rows, tmp_path, answer):
    """What a model or a content filter says is kept with the key starred out."""
    with serving(lambda *_: answer) as server:
        assert bench(server, rows, tmp_path / "out") == 0
    kept = everything(tmp_path / "out")
    assert KEY not in kept
    assert "***" in kept


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 429, 500])
def test_an_endpoint_that_echoes_the_key(rows, tmp_path, caplog, capsys, code):
    """Neither the exception nor its causes, nor a log, nor a file of the run holds the key."""
    body = {"error": {"message": f"bad key Bearer {KEY}", "given": {"authorization": KEY}}}
    out, more = tmp_path / "out", {"retries": 1, "key_variable": "LEAK_TEST_KEY"}
    caplog.set_level(logging.DEBUG)
    with serving(lambda *_: lambda handler: handler.reply(body, code, X_Echo=KEY)) as server:
        settings = Settings(str(rows), f"api:m@{server.url}", out, options=vars(FAST) | more)
        with pytest.raises(CecError) as caught:
            evaluate(settings)
        assert server.headers_seen[0]["Authorization"] == f"Bearer {KEY}"
    told = "".join(traceback.format_exception(caught.value))
    said = capsys.readouterr()
    for text in (told, repr(caught.value), caplog.text, said.out, said.err, everything(out)):
        assert KEY not in text


@pytest.mark.parametrize("written", ["{}", r"k3y\/5b1f+of==", "k3y%2F5b1f%2Bof%3D%3D"])
def test_an_echo_of_the_key_in_other_words(rows, tmp_path, capsys, monkeypatch, written):
    """An echoed key is masked as JSON and URLs write it, too."""
    key = "k3y/5b1f+of=="
    monkeypatch.setenv("LEAK_TEST_KEY", key)
    said = written.format(key)
    body = f'{{"error":"bad key {said}"}}'.encode()
    with serving(lambda *_: lambda handler: handler.raw(body, 401)) as server:
        assert bench(server, rows, tmp_path / "out") == 1
    told = capsys.readouterr()
    assert "bad key ***" in told.err
    assert "LEAK_TEST_KEY" in told.err
    assert said not in told.out + told.err + everything(tmp_path / "out")


@pytest.mark.parametrize(
    "rest",
    [
        "m@https://user:PW@httpd.internal/v1",
        "m@https://user:PW@host@httpd/v1",
        "m@HTTPS://user:PW@host/v1",
        "m@https://PW@host/v1",
        "m@https://host/v1?key=PW",
        "m@https://host/v1#PW",
        "m@https://user:PW@[::1/v1",
        "m@https://user:PW@host:port/v1",
        "m@ftp://user:PW@host/v1",
        "m@user:PW@host/v1",
        "https://user:PW@host/v1",
        "@https://user:PW@host/v1",
    ],
)
def test_a_password_in_the_address_of_an_endpoint(rows, tmp_path, capsys, rest):
    """A password anywhere in --system is refused, and no message or file repeats it."""
    words = ["run", "--system", "api:" + rest.replace("PW", PASSWORD)]
    more = ["--benchmark", str(rows), "--key-variable", "LEAK_TEST_KEY"]
    more += ["--out", str(tmp_path / "out")]
    assert run(cli, [*words, *more]) == 2
    said = capsys.readouterr()
    assert "api:MODEL@URL" in said.err or "environment" in said.err
    assert PASSWORD not in said.out + said.err + everything(tmp_path)


@pytest.mark.parametrize("form", ["copy:{}", "{}", "oops:{}", "tagger:{}", "policy:{}", None])
def test_a_password_in_place_of_a_path(rows, tmp_path, capsys, form):
    """The error for such an address, as a system or a benchmark, shows no user and password."""
    address = f"https://user:{PASSWORD}@host/v1"
    system, benchmark = (form.format(address), rows) if form else ("copy", address)
    words = ["run", "--system", system, "--benchmark", str(benchmark), "--out"]
    assert run(cli, [*words, str(tmp_path / "out")]) != 0
    said = capsys.readouterr()
    assert form or "https://host/v1" in said.err
    assert PASSWORD not in said.out + said.err + everything(tmp_path)


def test_what_the_hubs_libraries_log(monkeypatch, caplog):
    """While a model loads, logged messages lose the password and the token."""
    monkeypatch.setenv("HF_ENDPOINT", f"http://user:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", f"hf_{KEY}")
    url = f"http://user:{PASSWORD}@127.0.0.1:9/x/y/resolve/main/config.json"
    logger = logging.getLogger("a.library.of.the.hub")
    with quiet_hub():
        logger.warning("'%s' thrown while requesting HEAD %s", "refused", url)
        logger.warning("Authorization: Bearer hf_%s", KEY)
        logger.warning("no model", exc_info=ValueError(url))
    assert "thrown while requesting HEAD http://127.0.0.1:9/x/y" in caplog.text
    assert "ValueError: http://127.0.0.1:9/x/y" in caplog.text
    assert PASSWORD not in caplog.text
    assert KEY not in caplog.text
    caplog.clear()
    logger.warning("as it stands: %s", url)
    assert url in caplog.text
