"""Kernels stand in many files, and numba's cache on disk knows them all."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from cecdata.perturbation.kernel import jit

MODULE = """
from cecdata.perturbation.kernel.jit import entry

@entry
def twice(number):
    "Doubled."
    return number * 2
"""


def compiled_in(folder, monkeypatch, digest):
    """(hits, misses) of the cache when the module is loaded as if the sources had that digest."""
    monkeypatch.setattr(jit, "sources", lambda: digest)
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
    """The digest covers the whole folder, and kernels import nothing compiled from elsewhere."""
    folder = Path(jit.__file__).parent
    jit.sources.cache_clear()
    assert len(jit.sources()) == 64
    for file in folder.glob("*.py"):
        for line in file.read_text("utf-8").splitlines():
            if line.startswith("from cecdata"):
                assert line.startswith("from cecdata.perturbation.kernel."), (file, line)
