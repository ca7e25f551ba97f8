"""A kill at any instant, step or call: nothing half-written has a name, nothing is lost."""

from __future__ import annotations

from importlib import import_module

import loopback
import pytest
import scenarios
from campaign import kill_over_and_over
from zygote import WORK


@pytest.mark.parametrize(("module", "owner", "name", "_piece_of"), WORK)
def test_what_counts_as_begun_is_there(module, owner, name, _piece_of):
    """A piece of work that was renamed would be counted by no campaign."""
    home = import_module(module)
    assert callable(getattr(getattr(home, owner) if owner else home, name))


def flawless(found, kills, workers=1):
    """What every campaign must have come to."""
    assert found.told == []
    assert found.kills == kills
    assert found.finished >= 1
    assert (found.partial, found.lost, found.duplicate, found.differing) == (0, 0, 0, 0)
    assert found.work_lost <= workers


@pytest.mark.parametrize("name", ["build", "embed", "bench"])
def test_killed_over_and_over(place, shimmed, name):
    """A handful of kills each: the finished output has the bytes of one that was never killed."""
    sizes = {"build": (120, 40), "embed": (120,), "bench": (40,)}[name]
    scenario = getattr(scenarios, name)(place, *sizes)
    kills = 10 if name == "build" else 5
    found = kill_over_and_over(shimmed, scenario, place, kills, seed=7)
    flawless(found, kills, scenario.workers)
    assert (found.begun > 0) == (name != "bench")  # which has nothing that a kill could cost


def test_an_export_is_whole_or_not_there(place, shimmed):
    """Killed anywhere; nothing of the killed ones is left beside the file in the end."""
    made = shimmed.run(*scenarios.build(place, 120, 40).words(place / "data"))
    assert made.code == 0, made.text
    scenario = scenarios.export(place / "data")
    found = kill_over_and_over(shimmed, scenario, place, 12, seed=5)
    assert found.told == []
    assert found.finished >= 1
    assert (found.partial, found.lost, found.duplicate, found.differing) == (0, 0, 0, 0)


def test_no_answer_is_asked_for_twice(place, zygote):
    """Every answer that lay on disk when the kill came is not asked for again."""
    with loopback.serving() as server:
        scenario = scenarios.asked(place, server.url, 40, 2)
        out = place / "out"
        kept = out / ".cecdata" / "requests.jsonl"
        for kills in (1, 2, 3):
            ended = zygote.run(*scenario.words(out), step=36)
            assert ended.killed, ended.text
            answered = kept.read_bytes().count(b"\n")
            # Under way when a kill came: as many as run at once, and no more.
            assert sum(server.asked.values()) - answered <= 2 * kills
        assert answered > 8
        ended = zygote.run(*scenario.words(out))
        assert ended.code == 0, ended.text
        assert set(scenario.rows(out).values()) == {1}
        assert len(scenario.rows(out)) == 40
        assert sum(server.asked.values()) <= 40 + 3 * 2
