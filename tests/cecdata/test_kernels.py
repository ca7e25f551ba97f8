"""Kernels: their decoder and mixer, what their cache knows, and where its files may lie."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from cecdata.common import kernels
from cecdata.common.kernels import (
    Interpreted,
    compiled,
    decode,
    mix,
    splitmix64,
    view_string_buffers,
)
from cecdata.perturbation import kernel

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@compiled
def _points(data, offsets, points):
    n = 0
    for row in range(len(offsets) - 1):
        n += decode(data, offsets[row], offsets[row + 1], points[n:])
    return n


@compiled
def _mixed(values, mixed):
    for i in range(len(values)):
        mixed[i] = mix(values[i])


@given(st.lists(TEXT, min_size=1, max_size=5), st.integers(0, 4))
@settings(deadline=None)  # the first call compiles
def test_code_points_are_those_of_python(texts, start):
    """Every text of an array, and of a slice of it, is decoded to its code points."""
    array = pa.array(texts, pa.string()).slice(min(start, len(texts) - 1))
    data, offsets = view_string_buffers(array)
    points = np.zeros(sum(map(len, texts)) + 1, np.uint32)
    count = _points(data, offsets, points)
    assert points[:count].tolist() == [ord(c) for text in array.to_pylist() for c in text]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
@settings(deadline=None)
def test_splitmix64_is_the_published_one(values):
    """Arrays and kernels mix as Steele, Lea and Flood's code does on unbounded integers."""

    def slow(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    array = np.array(values, np.uint64)
    mixed = np.empty_like(array)
    _mixed(array, mixed)
    assert mixed.tolist() == splitmix64(array).tolist() == [slow(value) for value in values]


DECORATED = re.compile(r"^@(compiled|entry|inlined|called)$", re.MULTILINE)
ROOT = Path(__file__).parents[2]
# Rooms whose entries have their folder and further packages in their digest, by `compiled_with` or
# `entry_with`.
WITH = {
    "cectrain.corrector.channel": ("cecdata.lm",),
    "cecdata.perturbation.kernel": ("cecdata.lm",),
    "cecdata.contamination": (),
}


def test_every_file_of_the_kernel_counts():
    """The digest of an entry covers its folder, which imports nothing compiled but the toolbox.

    The folder of language models is part of its digest, too.
    """
    folder = Path(kernel.__file__).parent
    kernels.hash_sources.cache_clear()
    assert kernels.hash_sources() != kernels.hash_sources(folder)
    for file in folder.glob("*.py"):
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("from cecdata"):
                rooms = ("perturbation.kernel", "common.kernels ", "lm.")
                homes = (*(f"from cecdata.{room}" for room in rooms), "from cecdata import lm")
                assert line.startswith(homes), (file, line)


def product_kernels():
    """Every compiled function of the product, with the module whose globals it has."""
    for path in ROOT.glob("cec*/**/*.py"):
        if DECORATED.search(path.read_text("utf-8")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            module = importlib.import_module(name)
            for value in vars(module).values():
                if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                    yield value, module


def test_a_kernel_calls_only_what_its_cache_knows():
    """A cached kernel calls its own file and the toolbox; an entry its own folder, too."""
    seen = 0
    for function, module in product_kernels():
        home = module.__name__
        for room in (kernel.__name__, *WITH):
            if home.startswith(room):
                home = room
        names = function.py_func.__code__.co_names
        named = [getattr(module, name, None) for name in names]
        places = [module, *(value for value in named if isinstance(value, ModuleType))]
        for callee in (getattr(place, name, None) for place in places for name in names):
            if isinstance(callee, Dispatcher):
                seen += 1
                known = (home, "cecdata.common.kernels", *WITH.get(home, ()))
                assert callee.py_func.__module__.startswith(known), (home, callee)
    assert seen > 50


def test_nobody_compiles_past_the_toolbox():
    """Only the toolbox names numba's decorators."""
    for path in ROOT.glob("cec*/**/*.py"):
        if path != Path(kernels.__file__):
            assert "njit" not in path.read_text("utf-8"), path


TWICE = """
from cecdata.common.kernels import entry_with

@entry_with()
def twice(number):
    "Doubled."
    return number * 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module that has one kernel, in a home of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "toy.py").write_text(TWICE)
    return tmp_path


def hits(folder: Path) -> int:
    """Load the module, call its kernel, and return how many kernels came from the disk."""
    spec = importlib.util.spec_from_file_location("toy", folder / "package" / "toy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.twice(21) == 42
    assert module.twice.__doc__ == "Doubled."
    return sum(module.twice.stats.cache_hits.values())


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def test_a_change_in_any_file_compiles_anew(folder, monkeypatch):
    """The same sources are read from the disk, others are compiled though the file is the same."""
    for digest, read in (("one", 0), ("one", 1), ("two", 0)):
        monkeypatch.setattr(kernels, "hash_sources", lambda *_, digest=digest: digest)
        assert hits(folder) == read


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
    (folder / "package" / "toy.py").write_text(TWICE + "\n# changed\n")
    assert hits(folder) == 0
    assert len(kept(folder)) == 1
    assert kept(folder) != before


def test_the_next_place_is_taken_where_one_cannot_be_written(folder, monkeypatch):
    """Beside the package, else in the home folder, else none, which is said once."""
    said = []
    monkeypatch.setattr("cecdata.common.kernels.say", said.append)
    kernels._say_once.cache_clear()
    (folder / "package" / "__pycache__").write_text("a file, where no folder can be made")
    hits(folder)
    assert kept(folder)[0].is_relative_to(folder / "home")
    assert hits(folder) == 1
    kept(folder)[0].unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "package" / "toy.py"))
    assert [text.split(".")[0] for text in said] == ["Compiling code"]
    assert hits(folder) == 0
    assert hits(folder) == 0
    assert len(said) == 2
    assert "NUMBA_CACHE_DIR" in said[1]


@pytest.mark.slow
def test_an_installation_that_nobody_can_write(tmp_path):
    """Without a home and a writable package a command works, and says in one line what it costs."""
    program = (
        "import sys; from cecdata.common import kernels as cache; "
        "cache.write_bytes = lambda *_: (_ for _ in ()).throw(PermissionError()); "
        "cache._read_kernel = lambda *_: None; "
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
    assert done.stderr.count("Warning: compiled code cannot be kept") == 1
    assert "Compiling code. This happens once" in done.stderr


ALLOCATES = (
    TWICE
    + """
import numpy as np
from cecdata.common.kernels import compiled

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


def test_a_kernel_with_little_to_do_is_interpreted_before_it_is_compiled():
    """With the same result; what it calls is interpreted, too, until the work adds up."""
    values = np.arange(7, dtype=np.uint64) << np.uint64(60)

    @compiled
    def mixed_of(values, mixed):
        for i in range(len(values)):
            mixed[i] = mix(values[i])

    mixed_of._cache.is_kept = lambda: False  # whatever an earlier run left
    kernel = Interpreted(mixed_of, small=7, total=14)
    for work, is_compiled in ((7, False), (6, False), (2, True)):
        result = np.zeros_like(values)
        kernel(work, values, result)
        assert result.tolist() == splitmix64(values).tolist()
        assert bool(mixed_of.signatures) is is_compiled


def test_a_kernel_with_much_to_do_is_compiled_at_once():
    """So is one that is kept on disk, whose loading takes milliseconds."""
    values = np.zeros(3, np.uint64)
    for kept, work in ((False, 8), (True, 1)):

        @compiled
        def mixed_of(values, mixed):
            for i in range(len(values)):
                mixed[i] = mix(values[i])

        mixed_of._cache.is_kept = lambda kept=kept: kept
        Interpreted(mixed_of, small=7, total=14)(work, values, np.zeros_like(values))
        assert mixed_of.signatures


def test_a_program_that_runs_for_long_compiles_for_the_first_call():
    """However little that call has to do."""
    values = np.zeros(3, np.uint64)

    @compiled
    def mixed_of(values, mixed):
        for i in range(len(values)):
            mixed[i] = mix(values[i])

    mixed_of._cache.is_kept = lambda: False
    kernel = Interpreted(mixed_of, small=7, total=14)
    kernel.stop_interpreting()
    kernel(1, values, np.zeros_like(values))
    assert mixed_of.signatures
