"""Operators and filters of the user's own modules, and operators of installed packages."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cecdata.common import plugins

ROOT = Path(__file__).parents[3]
MODULE = """from cecdata.operators.base import Confusion, Operator
from cecdata.filters.base import Filter
import numpy as np


def _confusions(character):
    if character in "的地":
        yield Confusion(character, "地" if character == "的" else "的", 1.0, "particle")


def _short(pairs, config):
    return np.array([len(text) < 9 for text in pairs.column("target").to_pylist()])


OPERATOR = Operator("particle", "substitute", 1, ("particle",), _confusions)
FILTER = Filter("short", _short)
"""
RECIPE = """copies = 1
filters = ["levenshtein", "my_ops:FILTER"]
[prior]
width = 0.5
particle = 0.5
[rate]
width = 0.05
particle = 0.05
"""
NAMED = '[operators]\nparticle = "my_ops:OPERATOR"\n'
LINES = (
    "他高兴地唱着的歌，很好听。",
    "慢慢地走来的人是我的老师。",
    "他的书很好。",
    "我们的学校在河的对面。",
)


@pytest.fixture
def build(cecdata, tmp_path, monkeypatch):
    """Build in a folder with the module, as a new process would: (exit code, stdout, stderr)."""
    (tmp_path / "my_ops.py").write_text(MODULE, "utf-8")
    (tmp_path / "own.toml").write_text(RECIPE + NAMED, "utf-8")
    (tmp_path / "corpus.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def call(out, *more):
        sys.modules.pop("my_ops", None)
        importlib.invalidate_caches()
        plugins.import_object.cache_clear()
        plugins.find_points.cache_clear()
        return cecdata("build", "corpus.txt", "--recipe", "own.toml", "--out", out, *more)

    yield call
    sys.modules.pop("my_ops", None)
    plugins.import_object.cache_clear()
    plugins.find_points.cache_clear()


def test_a_recipe_names_operators_and_filters_of_a_module(build, cecdata, tmp_path, tree_of):
    """They act, the manifest has their names and source, and another source is another build."""
    assert build("one", "--workers", "1")[0] == 0
    assert build("two", "--workers", "2")[0] == 0
    assert tree_of(tmp_path / "one") == tree_of(tmp_path / "two")
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["operators"] == {"particle": "my_ops:OPERATOR"}
    assert manifest["operators"]["particle"] > 0
    assert manifest["pairs"]["rejected"]["short"] == 1
    assert len(manifest["tables"]["particle"]) == 64
    for name in ("my_ops:OPERATOR", "my_ops:FILTER"):
        assert manifest["versions"][name].startswith("sha256:")
    code, said, _ = cecdata("preview", "的", "--operator", "particle", "--recipe", "own.toml")
    assert (code, said) == (0, "地\t1.0000\tparticle\n")
    (tmp_path / "my_ops.py").write_text(MODULE.replace("< 9", "< 10"), "utf-8")
    code, _, said = build("one", "--workers", "1")
    assert code == 5
    assert "my_ops:FILTER" in said


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no ray here")
def test_ray_finds_the_module(build, tmp_path, tree_of):
    """Tasks of Ray import it as threads do, and write the same bytes."""
    assert build("local")[0] == 0
    words = ["build", "corpus.txt", "--recipe", "own.toml", "--out", "ray", "--engine", "ray"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0"}
    done = subprocess.run(
        [sys.executable, "-c", "from cecdata.cli import main; main()", *words, "--workers", "1"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert tree_of(tmp_path / "ray") == tree_of(tmp_path / "local")


def test_an_installed_package_adds_an_operator(build, cecdata, tmp_path, monkeypatch):
    """A recipe has its name alone, and the manifest its module and version."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "my_package-1.5.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.5\n")
    (package / "top_level.txt").write_text("my_ops\n")
    (package / "entry_points.txt").write_text("[cecdata.operators]\nparticle = my_ops:OPERATOR\n")
    (tmp_path / "own.toml").write_text(RECIPE, "utf-8")
    monkeypatch.setattr(plugins, "find_packages", importlib.metadata.packages_distributions)
    assert build("out")[0] == 0
    code, said, _ = cecdata("preview", "的", "--operator", "particle")
    assert (code, said) == (0, "地\t1.0000\tparticle\n")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["operators"] == {"particle": "my_ops:OPERATOR"}
    assert manifest["versions"]["my_ops:OPERATOR"].startswith("1.5, sha256:")


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (RECIPE, "no operator 'particle'"),
        (RECIPE + '[operators]\nparticle = "my_ops"\n', 'must be "module:name"'),
        (RECIPE + '[operators]\nparticle = "none:OPERATOR"\n', "No module named 'none'"),
        (RECIPE + '[operators]\nparticle = "my_ops:FILTER"\n', "must be an Operator of that name"),
        (RECIPE + '[operators]\nnoise = "my_ops:OPERATOR"\n', "cecdata has an operator"),
        (RECIPE.replace(":FILTER", ":OPERATOR") + NAMED, "must be a Filter"),
    ],
)
def test_what_is_no_operator_is_refused(build, tmp_path, recipe, words):
    """The message says what is wrong with the name, and the exit code is that of usage."""
    (tmp_path / "own.toml").write_text(recipe, "utf-8")
    code, _, said = build("out")
    assert code == 2
    assert words in said


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('raise ValueError("boom")', "my_ops, line 12: ValueError: boom. This module is a plug-in"),
        ("return np.array([True])", "filter my_ops:FILTER: its rule must return True or False for"),
        ("return np.ones(len(pairs.lengths))", "its rule must return True or False for each of 3 "),
    ],
)
def test_a_fault_of_a_filter_is_its_own(build, tmp_path, rule, words):
    """The message names the user's module, and does not call the fault a bug of this package."""
    body = 'return np.array([len(text) < 9 for text in pairs.column("target").to_pylist()])'
    assert body in MODULE
    (tmp_path / "my_ops.py").write_text(MODULE.replace(body, rule), "utf-8")
    code, _, said = build("out")
    assert code in (1, 2)
    assert words in said
    assert "a bug" not in said


def test_a_manifest_imports_nothing(tmp_path, monkeypatch):
    """A dataset of somebody else names a module in the working directory: it is not imported."""
    from cecdata.common.errors import VerificationError
    from cecdata.config import decode_config, load

    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    settings = load().as_dict() | {"operators": {"particle": "planted:OPERATOR"}}
    with pytest.raises(VerificationError, match="no installed package adds"):
        decode_config(settings)
    assert "planted" not in sys.modules
