"""Compiled kernels on disk: damage is mended, and a place is found wherever there is one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
from cecdata.common.kernels.jit import entry

@entry
def twice(number):
    return number * 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module that has one kernel, in a home of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "toy.py").write_text(MODULE)
    return tmp_path


def hits(folder: Path) -> int:
    """Load the module, call its kernel, and return how many kernels came from the disk."""
    spec = importlib.util.spec_from_file_location("toy", folder / "package" / "toy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.twice(21) == 42
    return sum(module.twice.stats.cache_hits.values())


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda data: data[:99], flipped, lambda _: b"garbage\n", lambda d: d + b"x"],
    ids=["empty", "cut", "flipped", "garbage", "longer"],
)
def test_a_damaged_file_is_made_anew(folder, damage):
    """Neither a traceback nor a wrong kernel: the file is replaced by a whole one."""
    assert hits(folder) == 0
    (path,) = kept(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert hits(folder) == 0
    assert hits(folder) == 1
    assert kept(folder) == [path]


def test_kernels_of_older_sources_are_removed(folder):
    """A change in the file leaves one kernel, that of the new source."""
    hits(folder)
    before = kept(folder)
    (folder / "package" / "toy.py").write_text(MODULE + "\n# changed\n")
    assert hits(folder) == 0
    assert len(kept(folder)) == 1
    assert kept(folder) != before


def test_the_next_place_is_taken_where_one_cannot_be_written(folder, monkeypatch):
    """Beside the package, else in the home folder, else a folder for temporary files, else none."""
    said = []
    monkeypatch.setattr("cecdata.common.kernels.jit.say", said.append)
    monkeypatch.setattr("cecdata.common.kernels.jit._watch._warned", False)
    (folder / "package" / "__pycache__").write_text("a file, where no folder can be made")
    hits(folder)
    assert kept(folder)[0].is_relative_to(folder / "home")
    assert hits(folder) == 1
    kept(folder)[0].unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "package" / "toy.py"))
    assert said == []
    hits(folder)
    assert kept(folder)[0].is_relative_to(folder / "tmp")
    assert "NUMBA_CACHE_DIR" in said[0]
    assert hits(folder) == 1
    kept(folder)[0].unlink()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "absent"))
    assert hits(folder) == 0
    assert hits(folder) == 0
    assert len(said) == 1  # once a process


def test_a_package_below_the_temporary_folder_is_no_temporary_place(folder, monkeypatch):
    """An environment that someone made there keeps its kernels, so that nothing is said."""
    said = []
    monkeypatch.setattr("cecdata.common.kernels.jit.say", said.append)
    monkeypatch.setattr("cecdata.common.kernels.jit._watch._warned", False)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    hits(folder)
    assert kept(folder)[0].is_relative_to(folder / "package")
    assert said == []


def test_a_folder_that_others_can_write_is_not_read(folder, monkeypatch):
    """What is read from the cache is run: a shared folder is passed over."""
    monkeypatch.setattr("cecdata.common.kernels.jit._watch._warned", True)
    (folder / "package" / "__pycache__").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "package" / "toy.py"))
    hits(folder)
    private = folder / "tmp" / f"cec-zero-kernels-{os.getuid()}"
    assert hits(folder) == 1
    private.chmod(0o777)
    assert hits(folder) == 0


@pytest.mark.slow
def test_an_installation_that_nobody_can_write(tmp_path):
    """Without a home and a writable package a command works, and says in one line what it costs."""
    program = (
        "import sys; from cecdata.common.kernels import jit as cache; "
        "cache._write = lambda *_: (_ for _ in ()).throw(PermissionError()); "
        "cache._read = lambda *_: None; "
        "from cecdata.cli import main; sys.argv = ['cecdata', 'preview', '他的病情。']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Warning: compiled kernels cannot be kept") == 1
    assert "Compiling kernels, once" in done.stderr


ALLOCATES = (
    MODULE
    + """
import numpy as np
from cecdata.common.kernels.jit import compiled

@compiled
def copied(numbers):
    return numbers.copy()

print(twice(21), copied(np.arange(4)).sum(), *map(sum, [twice.stats.cache_hits.values(),
      copied.stats.cache_hits.values()]))
"""
)


def test_kept_kernels_of_both_kinds_run_in_a_new_process(folder):
    """One that allocates needs numba's memory manager, also after one that does not."""
    (folder / "package" / "toy.py").write_text(ALLOCATES)
    for hits in (0, 1):
        command = [sys.executable, folder / "package" / "toy.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"42 6 {hits} {hits}\n"), done.stderr
