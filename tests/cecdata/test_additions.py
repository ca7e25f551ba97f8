"""The recipes of CONTRIBUTING: an addition touches the files that they name alone."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cecdata

ROOT = Path(cecdata.__file__).parents[1]
LINES = (
    "他高兴地唱着的歌，很好听。",
    "慢慢地走来的人是我的老师。",
    "这是第3次开会的地方。",
    "我们的学校在河的对面。",
)

OPERATOR = '''"""的 and 地 for each other."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.operators.base import Confusion, Operator

KINDS = ("particle",)


def _confusions(character: str) -> Iterator[Confusion]:
    if character in "的地":
        yield Confusion(character, "地" if character == "的" else "的", 1.0, "particle")


OPERATOR = Operator("toy", "substitute", 1, KINDS, _confusions)
'''

FILTER = '''"""No pair of a sentence with a digit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from cecdata.config import Config
from cecdata.filters.base import Filter, Tally
from cecdata.perturbation.pairs import Mask, Pairs
from cecdata.shards.manifest import Manifest


def _measure(pairs: Pairs, _config: Config, _sentences: int) -> Pairs:
    counts = {"seen": len(pairs.table)}
    return replace(pairs, counts={**pairs.counts, "toy": counts})


def _has_digit(pairs: Pairs, _config: Config) -> Mask:
    targets = pairs.table.column("target").cast("string")
    return np.asarray(pc.match_substring_regex(targets, "[0-9]"))


def _facts(manifest: Manifest, _config: Config, tally: Tally) -> Manifest:
    facts = {"seen": tally.counts["seen"], "dropped": sum(tally.dropped.values())}
    return replace(manifest, extra={**manifest.extra, "toy": facts})


FILTER = Filter("has_digit", _has_digit, measure=_measure, facts=_facts)
'''

MEASURE = """def _measure(pairs: Pairs, _config: Config, _sentences: int) -> Pairs:
    import pyarrow as pa
    import pyarrow.compute as pc

    targets = pairs.table.column("target").cast(pa.string()).combine_chunks()
    return pairs.with_column("signs", pc.count_substring(targets, "，").cast(pa.int32()))


"""

FORMAT = '''"""Records that a blank line ends; the first line of a record is its text."""

from collections.abc import Iterator

import pyarrow as pa

from cecdata.corpus.lines import blocks, numbers
from cecdata.corpus.rows import Format, Rows, gather
from cecdata.corpus.sources import Columns, Source, opened


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the texts of the records of a file."""
    texts = [record.partition(b"\\n")[0] for record in _records(source)]
    yield gather(source, pa.array(texts, pa.binary()), None, numbers(1, len(texts)))


def _values(source: Source) -> Iterator[list[str]]:
    """Yield all lines of each record."""
    return (record.decode("utf-8", "replace").split("\\n") for record in _records(source))


def _records(source: Source) -> list[bytes]:
    with opened(source) as stream:
        data = b"".join(block.data for block in blocks(stream, source))
    return [record for record in data.split(b"\\n\\n") if record.strip()]


FORMAT = Format(_read, _values, (".toy",), columns=False)
'''

#: runs command lines one after another, so that what they import is paid once
RUNS = """
import json, sys

from cecdata.cli import cli
from cecdata.common.command_group import run

for words in json.loads(sys.argv[1]):
    assert run(cli, words) == 0, words
"""

READS = """
from cecdata.cli import cli
from cecdata.common.command_group import run

for words in (["a.toy"], ["a.toy.gz"], ["a.x", "--format", "toy"]):
    assert run(cli, ["build", *words, "--dry-run", "--out", "out"]) == 0, words
assert run(cli, ["build", "a.toy", "--dry-run", "--out", "out", "--text-column", "x"]) == 1
"""

USES = """
import cecdata
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.shards.reader import open_dataset

words = ["build", "corpus.txt", "--filters", "levenshtein", "--out", "out"]
assert run(cli, words) == 0
for folder in ("out", "before"):
    for words in (["verify", "--full"], ["stats"], ["report"], ["export", f"{folder}.jsonl"]):
        assert run(cli, [words[0], folder, *words[1:]]) == 0, words
    for batch in open_dataset(folder).batches("train"):
        assert "signs" in batch.schema.names
    assert "signs" in cecdata.scan(folder).collect().columns
frame = cecdata.build(texts=["他高兴地唱着的歌，很好听。"], filters=("levenshtein",))
assert set(frame["signs"]) == {1}
"""

RECIPE = """
copies = 8
filters = ["levenshtein"]
holdout = 0.0

[prior]
homophone = 0.0
near_glyph = 0.0
radical = 0.0
split = 0.0
noise = 0.0
toy = 1.0

[rate]
toy = 0.1
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package, with the kernels that are compiled already, and of pyproject.toml."""
    shutil.copytree(ROOT / "cecdata", tmp_path / "cecdata")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    (tmp_path / "corpus.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return tmp_path


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Insert a text before another one that occurs once."""
    text = path.read_text("utf-8")
    for before, new in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, new + before)
    path.write_text(text, "utf-8")


def contract(tree: Path, name: str, room: str) -> None:
    """Name a module in the contract that those of its room know nothing of each other."""
    text = (tree / "pyproject.toml").read_text("utf-8")
    at = text.index("modules = [", text.index(f'name = "{room} know nothing of each other"'))
    head = at + len("modules = [")
    new = f'\n  "cecdata.{room}.{name}",'
    (tree / "pyproject.toml").write_text(text[:head] + new + text[head:], "utf-8")


def cli(tree: Path, *commands: str) -> str:
    return run(tree, RUNS, json.dumps([command.split() for command in commands]))


def run(tree: Path, script: str, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pair_column_touches_three_files(tree):
    """The schema, the filter that measures it and the page (which has no code): it is written,
    read, checked, exported, in the card and in frames, and null in earlier datasets."""
    cli(tree, "build corpus.txt --filters levenshtein --out before")
    edit(
        tree / "cecdata/shards/schema.py",
        (
            "    ]\n)\n\n# A pair that validation rejected.",
            '        pa.field("signs", pa.int32(), nullable=True),\n',
        ),
        ('    "text": "one sentence', '    "signs": "the number of commas",\n'),
    )
    path = tree / "cecdata/shards/schema.py"
    text = path.read_text("utf-8").replace("SCHEMA_VERSION = 2", "SCHEMA_VERSION = 3")
    path.write_text(text.replace("ADDED: dict[str, int] = {}", 'ADDED = {"signs": 3}'), "utf-8")
    path = tree / "cecdata/filters/levenshtein.py"
    text = path.read_text("utf-8").replace("_too_far)", "_too_far, _measure)")
    path.write_text(text.replace("FILTER = ", MEASURE + "FILTER = "), "utf-8")
    run(tree, USES)
    for folder, values in (("out", {0, 1}), ("before", {None})):
        rows = [
            json.loads(line) for line in (tree / f"{folder}.jsonl").read_text("utf-8").splitlines()
        ]
        assert {row["signs"] for row in rows} == values
    assert "| `signs` | the number of commas |" in (tree / "out/README.md").read_text("utf-8")


def test_an_operator_touches_four_files(tree):
    """Its module, its entry, a recipe and the contract: it is built, proved and inspected."""
    (tree / "cecdata/operators/toy.py").write_text(OPERATOR, "utf-8")
    edit(
        tree / "cecdata/operators/__init__.py",
        ("    swap,\n    width,\n", "    toy,\n"),
        ("    )\n}", "        toy,\n"),
    )
    (tree / "toy.toml").write_text(RECIPE, "utf-8")
    contract(tree, "toy", "operators")
    said = cli(
        tree,
        "build corpus.txt --recipe toy.toml --out out",
        "verify out --full",
        "preview 的 --operator toy",
    )
    manifest = json.loads((tree / "out/manifest.json").read_text("utf-8"))
    assert set(manifest["operators"]) == {"toy"}
    assert manifest["pairs"]["kept"] > len(LINES)
    assert "地\t1.0000\tparticle" in said


def test_a_filter_touches_three_files(tree):
    """Its module, its entry and the contract: it is measured, applied, counted and reported."""
    (tree / "cecdata/filters/toy.py").write_text(FILTER, "utf-8")
    edit(
        tree / "cecdata/filters/__init__.py",
        ("    }\n)", '        "toy": toy.FILTER,\n'),
    )
    path = tree / "cecdata/filters/__init__.py"
    text = path.read_text("utf-8")
    path.write_text(text.replace("levenshtein, plausibility\n", "levenshtein, plausibility, toy\n"))
    contract(tree, "toy", "filters")
    cli(tree, "build corpus.txt --filters levenshtein,toy --out out", "verify out --full")
    manifest = json.loads((tree / "out/manifest.json").read_text("utf-8"))
    assert manifest["pairs"]["rejected"]["has_digit"] == 4
    assert manifest["toy"] == {"seen": 16, "dropped": 4}


def test_a_format_touches_three_files(tree):
    """Its module, its entry and a reader that is fuzzed: it is read by its suffix, and by name."""
    (tree / "cecdata/corpus/formats/toy.py").write_text(FORMAT, "utf-8")
    path = tree / "cecdata/corpus/formats/__init__.py"
    edit(path, ("}\n", '    "toy": toy.FORMAT,\n'))
    text = path.read_text("utf-8")
    path.write_text(text.replace("parquet, text\n", "parquet, text, toy\n"), "utf-8")
    data = "他的病情已经好转。\n第一篇\n\n明天就可以出院了。\n第二篇\n".encode()
    for name, content in (("a.toy", data), ("a.toy.gz", gzip.compress(data)), ("a.x", data)):
        (tree / name).write_bytes(content)
    said = run(tree, READS)
    assert re.findall(r"^sentences +(\d+)$", said, re.MULTILINE) == ["2"] * 3
