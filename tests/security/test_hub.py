"""Who logs in at a model hub stands in HF_ENDPOINT and HF_TOKEN, and in no message, log or file."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest
from loopback import serving, status

from cecdata.common.errors import InputError
from cecdata.models.hub import refuse_missing_folder, shorten

PASSWORD = "pw-90d2-of-nobody"
TOKEN = "hf_t0ken5b1fofnobody77ac"
LINES = "他的病情已经好转，明天出院。\n天气很好，我们去公园。\n"
#: runs command lines one after another, so that what they import is paid once
RUNS = """
import importlib, json, sys
for words in json.loads(sys.argv[1]):
    sys.argv = words
    try:
        importlib.import_module(f"{words[0]}.cli").main()
    except SystemExit as end:
        print(f"{MARK}{end.code}", flush=True)
"""
MARK = "---- exit "
pytestmark = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("sentence_transformers", "transformers")),
    reason="the extras `embed` and `train` are not installed",
)


def build(model):
    return ["cecdata", "build", "a.txt", "--out", "out", "--encoder", f"x/{model}"]


def correct(model):
    return ["cectrain", "correct", "--model", f"x/{model}", "他己经来了。"]


def bench(model, kind="tagger"):
    system = f"{kind}:x/{model}"
    return ["cecbench", "run", "--system", system, "--benchmark", "b.tsv", "--out", "out"]


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


#: what is asked of the hub, and how it answers for that model
ANSWERS = (
    (build("absent-1"), not_there),
    (correct("absent-2"), not_there),
    (bench("absent-3"), not_there),
    (bench("absent-4", "llm"), not_there),
    (build("broken"), breaks),
    (build("half"), half_there),
    (correct("once"), half_there),
)


def told(folder, commands, endpoint):
    """The exit code of each command and what it said, in which no secret is, nor in any file."""
    (folder / "a.txt").write_text(LINES, "utf-8")
    (folder / "b.tsv").write_text("他己经来了。\t他已经来了。\n", "utf-8")
    environment = {
        **os.environ, "HF_ENDPOINT": endpoint, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(folder / "hf"), "no_proxy": "127.0.0.1", "HF_HUB_VERBOSITY": "debug",
        "TRANSFORMERS_VERBOSITY": "debug",
    }  # fmt: skip
    code = f"MARK = {MARK!r}{RUNS}"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=300,
    )  # fmt: skip
    files = [path for path in folder.rglob("*") if path.is_file()]
    kept = "\n".join(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in files)
    for text in (done.stdout, kept):
        lines = text.splitlines()
        assert [line for line in lines if PASSWORD in line or TOKEN in line] == []
    parts = re.split(rf"{MARK}(\d+)\n", done.stdout)
    return [*zip(map(int, parts[1::2]), parts[::2], strict=False)]


def test_a_hub_that_fails(tmp_path):
    """It has no such model, answers 500, or now this and now that: the message names the model."""
    seen = []

    def answer(handler):
        seen.append(handler.path)
        acts = [act for words, act in ANSWERS if any(w[2:] in handler.path for w in models(words))]
        acts[0](handler)

    def models(words):
        return [word.rpartition(":")[2] for word in words if "x/" in word]

    with serving() as server:
        server.get = answer
        endpoint = server.url.replace("//", f"//user:{PASSWORD}@").removesuffix("/v1")
        found = told(tmp_path, [words for words, _ in ANSWERS], endpoint)
    for (words, act), (code, said) in zip(ANSWERS, found, strict=True):
        (model,) = models(words)
        assert code == 1, said
        assert model in said
        assert any(model in path for path in seen)
        # what its library says of a further try stands in a log
        assert act is not half_there or words[0] != "cectrain" or "Retrying" in said


def test_nobody_answers_for_the_hub(tmp_path):
    """The message names the model that could not be fetched."""
    ((code, said),) = told(tmp_path, [build("y")], f"http://user:{PASSWORD}@127.0.0.1:9")
    assert (code, "x/y" in said) == (1, True), said


def test_a_hub_address_that_is_none(tmp_path):
    """A password with a slash makes no address: that is an error of ours, without the password."""
    commands = [build("y"), correct("y"), bench("y")]
    found = told(tmp_path, commands, f"http://user:{PASSWORD}/x@127.0.0.1:9")
    assert [code for code, _ in found] == [2] * 3, found
    for _, said in found:
        assert "HF_ENDPOINT" in said
        assert "Traceback" not in said


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
    assert shorten(error) == "We couldn't connect, and found no cached files"
    assert shorten(OSError("...")) == "OSError"
