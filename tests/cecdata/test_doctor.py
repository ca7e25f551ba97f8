"""`cecdata doctor` reports what is installed; run.json the commit of its tree."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import tomllib
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.commands.doctor import CALLS, FILES
from cecdata.common.kernels.jit import KernelCache
from cecdata.common.version import git_commit

ROOT = Path(__file__).parents[2]
PACKAGES = ("cecdata", "cecbench", "cectrain")


def test_json_holds_what_is_installed():
    """Cores and memory are positive, and each package has the version that Python reports."""
    facts = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).output)
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0
    assert facts["packages"]["polars"] == metadata.version("polars")
    assert "pytest" not in facts["extras"]["dev"]


def test_every_extra_is_listed():
    """People see every extra of pyproject.toml, and whether it is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    output = CliRunner().invoke(cli, ["doctor"]).output
    assert all(f"  {name:14}" in output for name in project["project"]["optional-dependencies"])


def test_compiling_needs_no_extra(tmp_path, monkeypatch):
    """An installation without extras, as in the image, has all that the scoring calls need."""
    from cecbench.cli import cli as bench

    monkeypatch.chdir(tmp_path)
    for package in ("opencc", "torch", "transformers", "httpx"):
        monkeypatch.setitem(sys.modules, package, None)
    calls = [call.split()[1:] for call in CALLS if call.startswith("cecbench")]
    for command, name, *options in calls:
        rows = FILES[name].splitlines(keepends=True)[:100]
        Path(name).write_text("".join(rows), "utf-8", newline="")
        done = CliRunner().invoke(bench, [command, name, *options])
        assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_every_kernel_is_compiled(tmp_path):
    """An image with this cache compiles nothing at its start: each kernel has a file in it."""
    # without the kernels that this checkout has compiled, and the tables that the user has kept
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-m", "cecdata", "doctor", "--compile", "--json"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["compiled"]
    files = (tmp_path / "kept").rglob("*.kernel")
    kept = {path.name.split("-")[0].partition(".")[2] for path in files}
    assert {kernel.py_func.__name__ for kernel in cached_kernels()} <= kept


def cached_kernels():
    """Every kernel of the product that has a cache."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if re.search("^@(compiled|entry)", path.read_text("utf-8"), re.MULTILINE):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                for value in vars(importlib.import_module(name)).values():
                    if isinstance(getattr(value, "_cache", None), KernelCache):
                        yield value


def test_the_commit_of_a_file_s_own_tree(tmp_path):
    """Forty digits, `-dirty` behind a change; nothing for a file that the tree does not hold, as
    a package is that lies in another project's environment."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    own, installed = tmp_path / "own.py", tmp_path / ".venv" / "package.py"
    installed.parent.mkdir()
    own.write_text("1")
    installed.write_text("1")
    assert git_commit(own) == ""
    git("init")
    git("add", "own.py")
    git("commit", "-m", "first")
    assert re.fullmatch("[0-9a-f]{40}", git_commit(own))
    assert git_commit(installed) == ""
    first = git_commit(own)
    own.write_text("2")
    assert git_commit(own) == f"{first}-dirty"
