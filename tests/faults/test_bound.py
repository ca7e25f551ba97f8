"""A run goes on with its own configuration alone, whatever became of what names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import harness
import loopback
import pytest
import scenarios
from harness import STATE

from cecbench.results import read_run


@pytest.fixture
def words(place):
    """A build of seven chunks, without its folder and seed."""
    text = scenarios.corpus(place, 70)
    return ("cecdata", "build", text, "--filters", "levenshtein", "--shard-sentences", "10",
            "--workers", "1", "--holdout", "0")  # fmt: skip


def killed(zygote, words, out):
    """A build of seed 42 that was killed after some of its chunks."""
    for step in range(90, 1000, 10):
        ended = zygote.run(*words, "--out", out, step=step)
        assert ended.killed, ended.text
        if len(list((out / STATE / "data").glob("*.parquet"))) > 1:
            return


def removed(path):
    path.unlink()


def other_seed(path):
    path.write_text(path.read_text("utf-8").replace('"seed": 42', '"seed": 43'), "utf-8")


@pytest.mark.parametrize("spoil", [removed, other_seed])
@pytest.mark.parametrize("finished", [False, True])
def test_no_output_of_two_seeds(place, zygote, words, spoil, finished):
    """Its fingerprint lost or edited, begun or finished: no other seed goes on with its chunks."""
    out = place / "out"
    if finished:
        assert zygote.run(*words, "--out", out).code == 0
    else:
        killed(zygote, words, out)
    spoil(out / STATE / "fingerprint.json")
    before = scenarios.tree(out, {})
    for seed in (42, 43, 7):
        ended = zygote.run(*words, "--out", out, "--seed", seed)
        assert ended.code == 5, ended.text
        assert f"remove the folder {out}" in ended.text
        assert "Traceback" not in ended.text
    assert scenarios.tree(out, {}) == before
    shutil.rmtree(out)  # as it was told
    assert zygote.run(*words, "--out", out, "--seed", 7).code == 0


def test_a_finished_dataset_of_others_is_not_ours(place, zygote, words):
    """Files of a finished dataset, laid into a run of another seed or text, are not handed out."""
    one, out = place / "one", place / "out"
    assert zygote.run(*words, "--out", one).code == 0
    killed(zygote, words, out)
    shutil.copytree(one, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(STATE))
    ended = zygote.run(*words, "--out", out)
    assert ended.code == 0, ended.text  # of the very same configuration and text
    other = place / "other.txt"
    other.write_text("\n".join(scenarios.sentences(60)), "utf-8")
    changed = [
        ((*words, "--seed", 7), "configuration.seed: 42 → 7"),
        ((*words[:2], other, *words[3:]), "corpus[0].sha256"),
    ]
    for number, (mine, difference) in enumerate(changed):
        out = place / f"out-{number}"
        killed(zygote, mine, out)
        shutil.copytree(one, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(STATE))
        ended = zygote.run(*mine, "--out", out)
        assert ended.code == 5, ended.text
        assert difference in ended.text
        assert f"remove the folder {out}" in ended.text


def test_paid_answers_are_not_cleared(place, zygote):
    """A bench that was killed with answers kept: another model or benchmark is refused."""
    with loopback.serving() as server:
        scenario = scenarios.asked(place, server.url, 40, 2)
        out = place / "out"
        kept = out / STATE / "requests.jsonl"
        ended = zygote.run(*scenario.words(out), step=40)
        assert ended.killed, ended.text
        answers = kept.read_bytes()
        assert answers.count(b"\n") > 4
        other = place / "other.tsv"
        other.write_text((place / "bench.tsv").read_text("utf-8").replace("第", "头"), "utf-8")
        words = scenario.words(out)
        spec = next(word for word in words if str(word).startswith("api:"))
        for mine in (
            [word.replace("api:tiny", "api:grand") for word in words],
            [word.replace(str(place / "bench.tsv"), str(other)) for word in words],
        ):
            assert mine != words
            ended = zygote.run(*mine)
            assert ended.code == 5, ended.text
            assert "another configuration" in ended.text
            assert kept.read_bytes() == answers
        ended = zygote.run(*words)
        assert ended.code == 0, (spec, ended.text)
        assert sum(server.asked.values()) <= 40 + 2


def test_answers_of_two_versions_are_not_mixed(place):
    """Begun or finished by another release of ours: it says which, changes nothing, and is read."""
    older = place / "older" / "cec_zero-0.0.9.dist-info"
    older.mkdir(parents=True)
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: cec-zero\nVersion: 0.0.9\n")
    late = loopback.sleeps(5.0)

    def bench(of_old):
        path = {"PYTHONPATH": str(older.parent)} if of_old else {}
        return subprocess.Popen(
            [*harness.python("cecbench"), *scenario.words(out)[1:]],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **path, "no_proxy": "127.0.0.1"},
        )  # fmt: skip

    def ended(of_old):
        with bench(of_old) as run:
            text = run.communicate()[0]
        return run.returncode, text

    with loopback.serving(lambda *_: late if len(server.answered) > 6 else None) as server:
        scenario, out = scenarios.asked(place, server.url, 20, 2), place / "out"
        kept = out / STATE / "requests.jsonl"
        with bench(of_old=True) as run:
            while not kept.exists() or kept.read_bytes().count(b"\n") < 5:
                assert run.poll() is None, run.communicate()[0]
                time.sleep(0.02)
            run.kill()
        server.misbehave = loopback.answers_well
        for _ in ("begun", "finished"):
            answers, before = kept.read_bytes(), scenarios.tree(out, {})
            code, text = ended(of_old=False)
            assert (code, 'version: "0.0.9" → ' in text) == (5, True), text
            assert (kept.read_bytes(), scenarios.tree(out, {})) == (answers, before)
            assert ended(of_old=True)[0] == 0
    assert len(read_run(out).rows) == 20
