"""A system and a benchmark are added with the files that CONTRIBUTING names, and with no others."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SYSTEM = '''"""A system that writes one character for another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cecbench.systems.base import Answer
from cecbench.systems.base import Kind
from cecbench.systems.base import NoOptions, option


@dataclass(frozen=True)
class ToyOptions(NoOptions):
    """Options of the toy."""

    toy_right: str = option("已", "The character that replaces the wrong one.")


class ToySystem:
    """Writes `right` for `wrong`."""

    name = "toy"
    block = 16

    def __init__(self, wrong: str, right: str) -> None:
        self._wrong, self._right = wrong, right
        self.identity: Mapping[str, object] = {"kind": "toy", "wrong": wrong, "right": right}

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Yield the sources with the one replaced by the other."""
        for source in sources:
            text = source.replace(self._wrong, self._right)
            yield Answer(text, text, tokens_out=1)


KIND = Kind(
    "toy:WRONG",
    "writes one character for another",
    ToyOptions,
    lambda wrong, options, _: ToySystem(wrong, options.toy_right),
)
'''

BENCHMARK = """
[[benchmark]]
name = "toys/one"
title = "a set of two sentences"
rows = 2
licence = "CC0"
citation = "nobody"
homepage = "https://example.org"
[[benchmark.releases]]
reader = "table"
[[benchmark.releases.files]]
path = "toys/one.tsv"
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and of its pages, in which a test may change files."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "cecbench", tmp_path / "cecbench", ignore=ignored)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "own.tsv").write_text(
        "他己经来了。\t他已经来了。\n天气很好。\t天气很好。\n", "utf-8"
    )
    return tmp_path


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new), "utf-8")


def cecbench(folder, *words):
    """Run the copy's command line; cecdata comes from the repository."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    code = "from cecbench.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(folder):
    """The files of the copy that differ from the repository's."""
    files = [
        p
        for name in ("cecbench", "docs")
        for p in (folder / name).rglob("*.*")
        if p.suffix in (".py", ".md", ".toml")
    ]
    names = [path.relative_to(folder) for path in files]
    return {
        str(name)
        for name in names
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (folder / name).read_bytes()
    }


def named(title):
    """The files that a recipe of CONTRIBUTING names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipe = re.search(rf"^\*\*{title}\*\*(.*?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    return set(re.findall(r"`((?:cecbench|docs)/\S+\.(?:py|md|toml))`", recipe))


def test_a_system_is_two_files_of_any_package(copy):
    """Its module has its form, its options and its identity; its package names it. The command
    line then lists it, takes its option, keeps its run and adds its tokens.
    """
    (copy / "toy.py").write_text(SYSTEM, "utf-8")
    package = copy / "someones_toy-1.0.dist-info"  # as `pip install` makes it of pyproject.toml
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-toy\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[cecbench.systems]\ntoy = toy:KIND\n")
    assert not changed(copy)
    assert 'entry-points."cecbench.systems"' in (ROOT / "CONTRIBUTING.md").read_text("utf-8")

    assert json.loads(cecbench(copy, "list", "--json"))["systems"]["toy"] == "toy:WRONG"
    assert "Options of toy:\n  --toy-right TEXT" in cecbench(copy, "run", "--help-all")
    words = ("run", "--benchmark", "own.tsv", "--json", "--system", "toy:己")
    values = json.loads(cecbench(copy, *words))
    assert (values["S_C_f1"], values["usage"]["tokens_out"]) == (100.0, 2)
    assert (copy / "out/bench/runs/own.tsv/toy-己/score.json").is_file()
    other = json.loads(cecbench(copy, *words, "--toy-right", "以", "--out", "other"))
    assert other["system_identity"]["right"] == "以"
    assert other["S_C_f1"] == 0


def test_a_benchmark_is_two_files(copy):
    """The catalogue has its entry, and the page a line. It is then listed, found and scored under
    its name.
    """
    catalogue = copy / "cecbench/benchmarks/catalogue.toml"
    catalogue.write_text(catalogue.read_text("utf-8") + BENCHMARK, "utf-8")
    row = "| `mcsc` | 19650 | `mcsc/test.txt` | CC BY-NC 2.0 | no |\n"
    page = copy / "docs/reference/benchmarks.md"
    edit(page, row, row + "| `toys/one` | 2 | `toys/one.tsv` | CC0 | no |\n")
    assert changed(copy) == named("A benchmark")
    assert len(changed(copy)) == 2

    (copy / "data/toys").mkdir(parents=True)
    (copy / "own.tsv").rename(copy / "data/toys/one.tsv")
    assert re.search(r"toys/one +2 rows  found", cecbench(copy, "list", "--data", "data"))
    words = ("run", "--benchmark", "toys/one", "--data", "data", "--system", "copy", "--json")
    values = json.loads(cecbench(copy, *words))
    assert values["benchmark_licence"] == "CC0"
    assert values["signature.benchmark"].startswith("toys/one@")
