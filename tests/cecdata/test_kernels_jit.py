"""Kernels stand in many files, and numba's cache on disk knows them all."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from cecdata.common.kernels import jit
from cecdata.perturbation import kernel

DECORATED = re.compile(r"^@(compiled|entry|inlined|called)$", re.MULTILINE)
ROOT = Path(__file__).parents[2]
# Rooms whose entries have their folder and further packages in their digest, by `compiled_with` or
# `entry_with`.
WITH = {"cectrain.corrector.channel": ("cecdata.lm",), "cecdata.contamination": ()}
MODULE = """
from cecdata.common.kernels.jit import entry

@entry
def twice(number):
    "Doubled."
    return number * 2
"""


def compiled_in(folder, monkeypatch, digest):
    """(hits, misses) of the cache when the module is loaded as if the sources had that digest."""
    monkeypatch.setattr(jit, "sources", lambda *_: digest)
    path = folder / "toy_kernel.py"
    spec = importlib.util.spec_from_file_location("toy_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.twice(21) == 42
    assert module.twice.__doc__ == "Doubled."
    return sum(module.twice.stats.cache_hits.values()), sum(
        module.twice.stats.cache_misses.values()
    )


def test_a_change_in_any_file_compiles_anew(tmp_path, monkeypatch):
    """The same sources are read from the disk, others are compiled though the file is the same."""
    (tmp_path / "toy_kernel.py").write_text(MODULE)
    assert compiled_in(tmp_path, monkeypatch, "one") == (0, 1)
    assert compiled_in(tmp_path, monkeypatch, "one") == (1, 0)
    assert compiled_in(tmp_path, monkeypatch, "two") == (0, 1)


def test_every_file_of_the_kernel_counts():
    """The digest of an entry covers its folder, which imports nothing compiled but the toolbox."""
    folder = Path(kernel.__file__).parent
    jit.sources.cache_clear()
    assert jit.sources() != jit.sources(folder)
    for file in folder.glob("*.py"):
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("from cecdata"):
                homes = ("from cecdata.perturbation.kernel.", "from cecdata.common.kernels.")
                assert line.startswith(homes), (file, line)


def product_kernels():
    """Every compiled function of the product, with the module whose globals it has."""
    for package in ("cecdata", "cecbench", "cectrain"):
        for path in (ROOT / package).rglob("*.py"):
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
        for name in function.py_func.__code__.co_names:
            callee = getattr(module, name, None)
            if isinstance(callee, Dispatcher):
                seen += 1
                known = (home, "cecdata.common.kernels.", *WITH.get(home, ()))
                assert callee.py_func.__module__.startswith(known), (module, name)
    assert seen > 50


def test_nobody_compiles_past_the_toolbox():
    """Only the toolbox names numba's decorators."""
    for package in ("cecdata", "cecbench", "cectrain"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name != "jit.py":
                assert "njit" not in path.read_text("utf-8"), path
