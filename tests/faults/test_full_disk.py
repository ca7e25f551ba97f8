"""A real small disk, full at many points: no good shard is harmed, more space is all it takes."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess

import pytest
import scenarios
from harness import STATE, differing

from cecdata.builds.place import Place


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
        if place.done(task, json.loads(marker.read_text())["build"]) is None:
            return False
    return True


@pytest.mark.parametrize(
    ("name", "shares"), [("build", (0.1, 0.5, 0.8)), ("bench", (0.5,))]
)
def test_full_at_many_points(place, zygote, name, shares):
    """Exit 1 with the folder; the same command finishes with space."""
    sizes = {"build": (120, 40), "bench": (400,)}[name]
    scenario = getattr(scenarios, name)(place, *sizes)
    whole = place / "whole"
    ended = zygote.run(*scenario.words(whole))
    assert ended.code == 0, ended.text
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
            ended = zygote.run(*scenario.words(out))
            assert ended.code == 0, ended.text
            assert differing(scenario.tree(out), wanted) == []


def test_an_export_to_a_full_disk(place, zygote):
    """The folder is named, and the file that was there is there as it was."""
    made = zygote.run(*scenarios.build(place, 120, 40).words(place / "data"))
    assert made.code == 0, made.text
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
        ended = zygote.run(*scenario.words(out))
        assert ended.code == 0, ended.text
        assert set(scenario.rows(out).values()) == {1}
