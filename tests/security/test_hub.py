"""Who logs in at a model hub stands in HF_ENDPOINT and HF_TOKEN, and in no message, log or file."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from loopback import serving, status

from cecdata.common.errors import InputError
from cecdata.common.hub import first_line, refuse_missing_folder

PASSWORD = "pw-90d2-of-nobody"
TOKEN = "hf_t0ken5b1fofnobody77ac"
LINES = "他的病情已经好转，明天出院。\n天气很好，我们去公园。\n"
needs_encoders = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="the extra `embed` is missing"
)
needs_policies = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
ENCODED = (
    ("cecdata", "build", "a.txt", "--out", "out", "--encoder", "x/y"),
)
ASKED = (
    ("cectrain", "correct", "--model", "x/y", "他己经来了。"),
    ("cecbench", "run", "--system", "tagger:x/y", "--benchmark", "b.tsv", "--out", "out"),
)


def told_of(commands, mark):
    return [pytest.param(words, marks=mark, id=" ".join(words[:3])) for words in commands]


COMMANDS = [*told_of(ENCODED, needs_encoders), *told_of(ASKED, needs_policies)]


def not_there(handler):
    handler.reply({"error": "no such model"}, 404)


def half_there(handler):
    """A hub that lists the model, and fails where its files are fetched: 500, then 404."""
    if "/api/models/" in handler.path:
        files = [{"rfilename": name} for name in ("config.json", "model.safetensors")]
        handler.reply({"id": "x/y", "sha": "a" * 40, "siblings": files})
    else:  # once: its library tries again for minutes
        handler.server.asked[handler.path] += 1
        status(500 if handler.server.asked[handler.path] == 1 else 404)(handler)


def breaks(handler):
    (status(500) if "/api/" in handler.path else not_there)(handler)


def told(folder, words, endpoint):
    """The exit code, and all that the command said and left behind."""
    (folder / "a.txt").write_text(LINES, "utf-8")
    (folder / "b.tsv").write_text("他己经来了。\t他已经来了。\n", "utf-8")
    environment = {
        **os.environ, "HF_ENDPOINT": endpoint, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(folder / "hf"), "no_proxy": "127.0.0.1", "HF_HUB_VERBOSITY": "debug",
        "TRANSFORMERS_VERBOSITY": "debug",
    }  # fmt: skip
    code = f"from {words[0]}.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words[1:]], cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    files = [path for path in folder.rglob("*") if path.is_file()]
    kept = "\n".join(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in files)
    return done.returncode, done.stdout + done.stderr, kept


def without_secrets(text):
    return [line for line in text.splitlines() if PASSWORD in line or TOKEN in line] == []


@pytest.mark.parametrize("words", COMMANDS)
def test_a_hub_that_has_no_such_model(tmp_path, words):
    """Every command that asks it: the message names the model, and nobody else."""
    refused(tmp_path, words, not_there)


@needs_encoders
@pytest.mark.parametrize("get", [breaks, half_there, None])
def test_a_hub_that_fails(tmp_path, get):
    """It answers 500, now this and now that, or not at all."""
    refused(tmp_path, ENCODED[0], get)


@needs_policies
def test_a_hub_that_fails_once(tmp_path):
    """What its library says of a further try stands in a log."""
    assert "Retrying" in refused(tmp_path, ASKED[0], half_there)


def refused(folder, words, get):
    """What is said of a hub that answers so; `get` None: nobody answers there."""
    with serving() as server:
        server.get = get
        endpoint = server.url.replace("//", f"//user:{PASSWORD}@").removesuffix("/v1")
        if get is None:
            endpoint = endpoint.rpartition(":")[0] + ":9"
        code, said, kept = told(folder, words, endpoint)
        asked = json.dumps(server.headers_seen)
    assert code == 1, said
    assert "x/y" in said
    assert without_secrets(said)
    assert without_secrets(kept)
    assert asked != "[]" or get is None
    return said


@pytest.mark.parametrize("words", COMMANDS)
def test_a_hub_address_that_is_none(tmp_path, words):
    """A password with a slash makes no address: that is an error of ours, without the password."""
    code, said, kept = told(tmp_path, words, f"http://user:{PASSWORD}/x@127.0.0.1:9")
    assert (code, "HF_ENDPOINT" in said, "Traceback" in said) == (2, True, False), said
    assert without_secrets(said)
    assert without_secrets(kept)


@pytest.mark.parametrize(
    "name", ["S/modle", "./T", "nosuch", "nosuch/", "/nosuch", "~/x", "a/b/c", "../x"]
)
def test_a_path_is_never_asked_of_the_hub(tmp_path, monkeypatch, name):
    """A name with the form of a path, or below an existing folder, must exist on this machine."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "S" / "model").mkdir(parents=True)
    with pytest.raises(InputError, match="no such folder"):
        refuse_missing_folder(name)
    for good in ("S/model", "S", "BAAI/bge-large-zh-v1.5"):
        refuse_missing_folder(good)


def test_what_the_hub_reports_has_no_stop_of_its_own():
    """The first line of a library's error fits into a sentence of ours."""
    error = OSError("We couldn't connect, and found no cached files..\nCheck your connection.")
    assert first_line(error) == "We couldn't connect, and found no cached files"
    assert first_line(OSError("...")) == "OSError"
