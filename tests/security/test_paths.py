"""Paths are paths: no library takes a user's path for a pattern, an address or a format."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import cecdata
from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.config import load
from cecdata.corpus.reading import read
from cecdata.shards.reader import open_dataset
from cecdata.shards.verify import verify

ROOT = Path(__file__).parents[2]
# A pattern that also matches its twin "out1", an address, a query, an escape, a partition, a home.
NAMES = [
    "out[1]",
    "out?",
    "out*",
    "run:1",
    "file:x",
    "s3:x",
    "a::b",
    "a%31",
    "{a,b}",
    "copy=1",
    "~",
]
CORPORA = {"own": "今天的会议改到下午三点。", "other": "他的病情已经好转，明天出院。"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two datasets of different sentences, not to be touched."""
    folder = tmp_path_factory.mktemp("made")
    for name, sentence in CORPORA.items():
        text = "".join(f"第{n}次，{sentence}\n" for n in range(1, 9 if name == "own" else 4))
        (folder / f"{name}.txt").write_text(text, "utf-8")
        config = load(copies=1, filters=("levenshtein",), holdout=0.3)
        build([str(folder / f"{name}.txt")], folder / name, config)
    return folder


@pytest.fixture(params=NAMES)
def named(request, made, tmp_path, monkeypatch):
    """The relative name of a dataset, beside another that the name as a pattern matches."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "own", tmp_path / request.param)
    if request.param != "out1":
        shutil.copytree(made / "other", tmp_path / "out1")
    return request.param


def targets(frame) -> list[str]:
    return sorted(frame["target"])


@pytest.fixture(scope="module")
def expected(made):
    """The targets of the dataset by split."""
    opened = open_dataset(made / "own")
    return {
        split: sorted(row["target"] for batch in opened.batches(split) for row in batch.to_pylist())
        for split in ("train", "validation")
    }


def test_a_dataset_is_read_by_its_name(named, expected):
    """Frames, scans and checks give the rows of the folder that was named."""
    assert targets(cecdata.scan(named, "train").collect()) == expected["train"]
    assert verify(named).ok
    table = pl.concat(frame.collect() for frame, _ in open_dataset(named).scan_shards("validation"))
    assert targets(table) == expected["validation"]


def test_training_reads_the_dataset_by_its_name(named, expected, tmp_path):
    """The mapped table of the trainer has the rows of the folder that was named."""
    from cectrain.config import DataConfig
    from cectrain.data.shards import open_shards
    from cectrain.data.training_pairs import training_pairs

    found = training_pairs(open_shards(Path(named)), DataConfig(), 60, 1, Path(named) / "arrow")
    assert sorted(pair.target for pair in found.take(range(len(found)), 0)) == expected["train"]


def test_the_commands_read_it_by_its_name(named, expected, tmp_path):
    """`stats`, `export`, `report` and `contamination` work on the folder that was named."""
    for line in (
        ["stats", named, "--json"],
        ["export", named, "x.jsonl"],
        ["report", named, "--out", "seen"],
    ):
        done = CliRunner().invoke(cli, line)
        assert done.exit_code == 0, done.output
    assert targets(pl.read_ndjson(tmp_path / "x.jsonl")) == expected["train"]


def test_a_build_reads_and_writes_by_name(named, made, tmp_path):
    """A file of a corpus and an output folder with such a name are that file and that folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(made / "own.txt", folder / f"{named}.txt")
    shutil.copy(made / "other.txt", folder / "out1.txt")
    config = load(copies=1, filters=("levenshtein",))
    built = build([f"in/{named}.txt"], Path("new") / named, config)
    assert built.rows.read == 8
    parquet = cecdata.scan(Path("new") / named).collect().rename({"target": "text"})
    parquet.write_parquet(folder / f"{named}.parquet")
    rows = [row for part in read([f"in/{named}.parquet"]) for row in part.batch.to_pylist()]
    assert {row["text"] for row in rows} == set(parquet["text"])
    assert {row["file"] for row in rows} == {f"in/{named}.parquet"}


def test_a_pattern_in_a_folder_with_brackets(named, made, tmp_path):
    """What comes before the pattern is the folder's own name, if there is such a folder."""
    shutil.copy(made / "own.txt", tmp_path / named / "a.txt")
    shutil.copy(made / "other.txt", tmp_path / "out1" / "a.txt")
    rows = [row for part in read([f"{named}/*.txt"]) for row in part.batch.to_pylist()]
    assert {row["file"] for row in rows} == {f"{named}/a.txt"}


def test_no_reader_in_the_tree_expands_patterns():
    """Each reader of Polars gets `glob=False`; no file is given to `datasets`, which globs."""
    readers = ("scan_parquet", "read_parquet", "scan_csv", "read_csv", "scan_ipc", "scan_ndjson")
    found = []
    for folder in ("cecdata", "cecbench", "cectrain", "tools", "benchmarks", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func)
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if name in [f"pl.{reader}" for reader in readers] and words.get("glob") != "False":
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
                if name.endswith(("from_parquet", "from_json", "from_csv")):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not found
