"""A kill at any instant, calls that fail, a full disk: nothing is lost, no false "done"."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess

import figures
import loopback
import pytest
import scenarios
from campaign import ORDEALS, Unbroken, kill_over_and_over, sweep
from harness import STATE, differing

from cecdata.builds.place import Place

#: in the ordinary suite some k of some ordeals; figures.py takes every k of all
QUICK = [
    ("bench", "ENOSPC for good", 3), ("bench", "EINTR", 2), ("build", "ENOSPC", 3),
    ("build", "EIO on reading back", 4), ("build", "short write", 2),
]  # fmt: skip


def flawless(found, kills):
    """What every campaign must have come to."""
    assert found.told == []
    assert found.kills == kills
    assert found.finished >= 1
    assert (found.partial, found.lost, found.duplicate, found.differing) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", ["build", "bench"])
def test_killed_over_and_over(place, shimmed, name):
    """A handful of kills each: the finished output has the bytes of one that was never killed."""
    sizes = {"build": (120, 40), "bench": (40,)}[name]
    scenario = getattr(scenarios, name)(place, *sizes)
    kills = 6 if name == "build" else 4
    found = kill_over_and_over(shimmed, scenario, place, kills, seed=7)
    flawless(found, kills)


def test_an_export_is_whole_or_not_there(place, shimmed):
    """Killed anywhere; nothing of the killed ones is left beside the file in the end."""
    shimmed.done(*scenarios.build(place, 120, 40).words(place / "data"))
    scenario = scenarios.export(place / "data")
    flawless(kill_over_and_over(shimmed, scenario, place, 6, seed=5), 6)


def test_no_answer_is_asked_for_twice(place, zygote):
    """Every answer that lay on disk when the kill came is not asked for again."""
    with loopback.serving() as server:
        scenario = scenarios.asked(place, server.url, 40, 2)
        out = place / "out"
        kept = out / ".cecdata" / "requests.jsonl"
        for kills in (1, 2, 3):
            ended = zygote.run(*scenario.words(out), step=30)
            assert ended.killed, ended.text
            answered = kept.read_bytes().count(b"}\n")
            # Under way when a kill came: as many as run at once, and no more.
            assert sum(server.asked.values()) - answered <= 2 * kills
        assert answered > 8
        zygote.done(*scenario.words(out))
        assert set(scenario.rows(out).values()) == {1}
        assert len(scenario.rows(out)) == 40
        assert sum(server.asked.values()) <= 40 + 3 * 2


@pytest.fixture(scope="module")
def unbroken(room, shimmed):
    """Each scenario with the run that nobody disturbed, made when first asked for."""
    known = {}

    def find(name):
        if name not in known:
            folder = room / f"calls-{name}"
            folder.mkdir()
            scenario = getattr(scenarios, name)(folder, *figures.SMALL[name])
            known[name] = scenario, Unbroken.of(shimmed, scenario, folder / "unbroken")
        return known[name]

    return find


@pytest.mark.parametrize(("name", "ordeal", "count"), QUICK)
def test_some_calls_fail(place, shimmed, unbroken, name, ordeal, count):
    """Spread over the whole run: exit ≠ 0 with the folder named, or all of it; then it goes on."""
    scenario, wanted = unbroken(name)
    matched = sum(wanted.kinds[call] for call in ORDEALS[ordeal][2])
    ks = [1 + place * matched // count for place in range(count)]
    found = sweep(shimmed, scenario, place, ordeal, wanted, ks)
    assert found.told == []
    assert found.cases == count


@pytest.mark.slow
def test_three_hundred_kills(shimmed):
    """Builds, embeddings, benches, training; 300 SIGKILLs in all: nothing lost, nothing twice."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    assert figures.kills(list(figures.SHARES), 300, seed=20) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", list(figures.SMALL))
def test_every_call_fails(shimmed, name):
    """Every k of every ordeal: an error that tells, or all of it; then the same command ends."""
    assert figures.calls([name], 1, list(figures.ORDEALS)) == []


@contextlib.contextmanager
def disk(folder, kib):
    """A tmpfs of so many KiB at `folder`, and a function that gives it another size."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")

    def do(*words):
        return subprocess.run([mount, *words], capture_output=True, text=True, check=False)

    if mount is None or do("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)).returncode:
        pytest.skip("mounting a small disk needs root and mount(8)")
    try:
        yield lambda option: do("-o", f"remount,{option}", str(folder)).returncode == 0
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def sound(out):
    """Every file that a marker calls done still has its SHA-256."""
    place = Place(str(out))
    for marker in (out / STATE / "done").rglob("*.json"):
        task = f"{marker.parent.name}/{marker.stem}"
        if place.find_marker(task, json.loads(marker.read_text())["build"]) is None:
            return False
    return True


@pytest.mark.parametrize(("name", "shares"), [("build", (0.1, 0.5, 0.8)), ("bench", (0.5,))])
def test_full_at_many_points(place, zygote, name, shares):
    """Exit 1 with the folder; the same command finishes with space."""
    sizes = {"build": (120, 40), "bench": (400,)}[name]
    scenario = getattr(scenarios, name)(place, *sizes)
    whole = place / "whole"
    zygote.done(*scenario.words(whole))
    wanted = scenario.tree(whole)
    # Of what lies there in the end: on the way, with the pool, it takes more than that.
    blocks = sum(-(-path.stat().st_size // 4096) for path in whole.rglob("*") if path.is_file())
    for kib in (int(share * blocks) * 4 for share in shares):
        with disk(place / "disk", kib) as remount:
            out = place / "disk" / "out"
            ended = zygote.run(*scenario.words(out))
            assert ended.code == 1, f"{kib} KiB: {ended.text}"
            assert re.search(rf"{place}/disk\S*: no space left \([\d,]+ bytes free", ended.text)
            assert "run the same command again" in ended.text
            assert "Traceback" not in ended.text
            assert scenario.partial(out, wanted) == []
            assert sound(out)
            assert remount("size=64m")
            zygote.done(*scenario.words(out))
            assert differing(scenario.tree(out), wanted) == []


def test_an_export_to_a_full_disk(place, zygote):
    """The folder is named, and the file that was there is there as it was; a read-only one, too."""
    zygote.done(*scenarios.build(place, 120, 40).words(place / "data"))
    with disk(place / "disk", 48) as remount:
        out = place / "disk" / "train.tsv"
        out.write_text("kept\n")
        words = ["cecdata", "export", place / "data", out, "--format", "jsonl", "--overwrite"]
        ended = zygote.run(*words)
        assert ended.code == 1, ended.text
        assert "Traceback" not in ended.text
        assert str(place / "disk") in ended.text
        assert out.read_text() == "kept\n"
        assert [path.name for path in out.parent.iterdir()] == [out.name]
        assert remount("size=64m")
        assert zygote.run(*words).code == 0
        assert remount("ro")
        page = place / "disk" / "page"
        report = ["cecdata", "report", place / "data", "--out", page]
        for command, name in ((words, out), (report, page)):
            said = zygote.run(*command).text
            assert f"{name}: Read-only file system. Check the disk" in said


def test_a_disk_that_becomes_read_only(place, zygote):
    """Killed, then the disk is read-only: told, nothing harmed; writable again, the run goes on."""
    scenario = scenarios.build(place, 120, 40)
    with disk(place / "disk", 65_536) as remount:
        out = place / "disk" / "out"
        ended = zygote.run(*scenario.words(out), step=60)
        assert ended.killed, ended.text
        assert remount("ro")
        ended = zygote.run(*scenario.words(out))
        assert ended.code in (1, 5)
        assert "Read-only file system" in ended.text
        assert str(out) in ended.text
        assert "Traceback" not in ended.text
        assert remount("rw")
        assert sound(out)
        zygote.done(*scenario.words(out))
        assert set(scenario.rows(out).values()) == {1}
