"""A key goes into one header of a request, and nowhere else."""

from __future__ import annotations

import logging
import traceback

import pytest
from loopback import says, serving

from cecbench.cli import cli
from cecbench.run import Settings, evaluate
from cecdata.common.command_group import run
from cecdata.common.errors import CecError, UsageError

KEY = "sk-7f3a9c-this-is-the-key-4242"
ROWS = "他己经来了。\t他已经来了。\n我们在见。\t我们再见。\n"


@pytest.fixture
def key(monkeypatch):
    """The key where a user would put it."""
    monkeypatch.setenv("SECRET_TEST_KEY", KEY)


@pytest.fixture
def rows(tmp_path):
    """A set of two sentences."""
    path = tmp_path / "own.tsv"
    path.write_text(ROWS, "utf-8")
    return path


def options(**more):
    return {
        "key_variable": "SECRET_TEST_KEY", "retries": 1, "backoff_s": 0.01, "timeout_s": 10, **more
    }  # fmt: skip


def everything(folder) -> str:
    """All that lies below a folder, names and contents."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in files)


def echo(code):
    """An endpoint that sends the request's own key back, in its body and in a header."""
    body = {"error": {"message": f"bad key Bearer {KEY}", "given": {"authorization": KEY}}}
    return lambda handler: handler.reply(body, code, X_Echo=KEY, Retry_After="0")


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 429, 500])
def test_an_endpoint_that_echoes_the_key(key, rows, tmp_path, caplog, capsys, code):
    """Neither the exception nor its causes, nor a log, nor a file of the run holds the key."""
    out = tmp_path / "out"
    caplog.set_level(logging.DEBUG)
    with serving(lambda *_: echo(code)) as server:
        settings = Settings(str(rows), f"api:m@{server.url}", out, options=options())
        with pytest.raises(CecError) as caught:
            evaluate(settings)
        assert server.headers_seen[0]["Authorization"] == f"Bearer {KEY}"
    told = "".join(traceback.format_exception(caught.value))
    said = capsys.readouterr()
    for text in (told, repr(caught.value), caplog.text, said.out, said.err, everything(out)):
        assert KEY not in text


DECLINED = {"error": {"code": "content_filter", "message": f"declined for {KEY}"}}


@pytest.mark.parametrize(
    "answer",
    [says(f"改正后：他已经来了。\n{KEY}"), lambda handler: handler.reply(DECLINED, 400)],
    ids=["model", "filter"],
)
def test_an_answer_that_holds_the_key(key, rows, tmp_path, answer):
    """What a model or a content filter says is kept with the key starred out."""
    with serving(lambda *_: answer) as server:
        evaluate(Settings(str(rows), f"api:m@{server.url}", tmp_path / "out", options=options()))
    kept = everything(tmp_path / "out")
    assert KEY not in kept
    assert "***" in kept


def test_the_command_line_says_nothing_of_it(key, rows, tmp_path, capsys):
    """`cecbench run` against an endpoint that refuses the key names the variable, not its value."""
    with serving(lambda *_: echo(401)) as server:
        words = ["run", "--system", f"api:m@{server.url}", "--benchmark", str(rows)]
        words += ["--out", str(tmp_path / "out"), "--key-variable", "SECRET_TEST_KEY"]
        assert run(cli, words) == 1
    said = capsys.readouterr()
    assert "SECRET_TEST_KEY" in said.err
    assert KEY not in said.out + said.err


def test_a_key_in_the_url_is_refused(key):
    """A user, a password or a query in an endpoint's URL would stand in every output."""
    from cecbench.systems.api import ApiOptions, ApiSystem

    for url in ("https://me:pw@host/v1", "https://host/v1?api_key=x"):
        with pytest.raises(UsageError, match="environment"):
            ApiSystem(f"m@{url}", ApiOptions(**options()))


def test_a_text_of_the_body_is_recorded_by_its_digest():
    """Numbers of --body are outputs as they are, and of a text the digest alone."""
    from cecbench.systems.api import ApiOptions, ApiSystem

    body = {"max_tokens": 5, "max_completion_tokens": 5, "top_k": 1, "deep": [{"password": KEY}]}
    system = ApiSystem("m@http://127.0.0.1:9/v1", ApiOptions(**options(), body=body))
    assert system.identity["body"] | {"deep": 0} == body | {"deep": 0}
    assert KEY not in str(system.identity)
