"""A run goes on with its own configuration alone, whatever became of what names it."""

from __future__ import annotations

import shutil

import loopback
import pytest
import scenarios
from harness import STATE


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
