"""Small real datasets: pairs made here by hand-drawn edits, written by the code under test."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xxhash
from corrupting import apply
from rapidfuzz.distance import Levenshtein

from cecdata.hanzi.edits import Corruption
from cecdata.shards.card import make_card
from cecdata.shards.manifest import (
    About,
    Calibration,
    Cosine,
    Counts,
    File,
    Manifest,
    Origin,
    encode_manifest,
)
from cecdata.shards.schema import PAIR, REJECTED_PAIR, REJECTED_ROW, write_pairs

Row = dict[str, Any]
ALPHABET = "今天气很好我们去公园散步在再已己误𠀀Ａ👍，。"
KINDS = {"homophone": "same_sound", "split": "split", "noise": "insertion", "radical": "deletion"}
ABOUT = About('测试 "pairs": a | b', "cc0-1.0", "data@example.com", "Made for a test.")


def draw_edits(rng: random.Random, target: str) -> list[Corruption]:
    """Up to three edits of one or two operators, none of which changes nothing."""
    operators = rng.sample(sorted(KINDS), rng.choice([1, 1, 2]))
    edits = []
    for place in sorted(rng.sample(range(len(target)), min(len(target), rng.randint(0, 3)))):
        operator = rng.choice(operators)
        old = target[place]
        symbol = rng.choice("#$%&*")
        new = {"homophone": "胶", "split": "言吴", "noise": symbol, "radical": ""}[operator]
        if operator == "noise":
            old = ""
        edits.append(
            Corruption(
                start=place,
                end=place + len(old),
                target=old,
                source=new,
                operator=operator,
                kind=KINDS[operator],
            )
        )
    return edits


def signed(word: int) -> int:
    """The same 64 bits as a signed number."""
    return word - 2**64 if word >= 2**63 else word


def make_row(target: str, copy: int, edits: list[Corruption]) -> Row:
    """One valid pair."""
    source = apply(target, edits)
    operators = {edit.operator for edit in edits}
    return {
        "id": signed(xxhash.xxh3_64_intdigest(target.encode())),
        "copy": copy,
        "source": source,
        "target": target,
        "operator": "mixed" if len(operators) > 1 else next(iter(operators), "unchanged"),
        "edits": [{name: getattr(edit, name) for name in Corruption.__slots__} for edit in edits],
        "distance": Levenshtein.distance(source, target),
        "cosine": None if copy else 0.9,
        "origin": "测试",
    }


def make_rows(sentences: int, *, first: int = 0, copies: int = 3, seed: int = 0) -> list[Row]:
    """Valid pairs of distinct sentences; the copies of one stand together."""
    rng = random.Random(seed)
    rows = []
    for number in range(first, first + sentences):
        target = str(number) + "".join(rng.choices(ALPHABET, k=rng.randint(1, 30)))
        for copy in range(copies):
            row = make_row(target, copy, draw_edits(rng, target))
            if row["source"] != target or row["operator"] == "unchanged":
                rows.append(row)
    return sorted(rows, key=lambda row: (row["id"], row["copy"]))


def table_of(rows: list[Row]) -> pa.Table:
    """Rows as a table of the frozen schema."""
    return pa.Table.from_pylist(rows, schema=PAIR)


def file_of(out: Path, path: str, rows: int = 0) -> File:
    """The manifest's record of a file as it lies."""
    data = (out / path).read_bytes()
    return File(path, hashlib.sha256(data).hexdigest(), len(data), rows)


def ids_of(rows: list[Row]) -> dict[str, Any]:
    """The range of ids that the manifest states for a shard of these rows."""
    ids = [row["id"] for row in rows]
    return {"ids": [min(ids), max(ids)]} if ids else {}


def write_dataset(out: Path, shards: dict[str, list[list[Row]]]) -> Path:
    """A whole dataset: shards of rows by split, rejects, manifest, card."""
    (out / "data").mkdir(parents=True)
    (out / "rejects").mkdir()
    outputs = {}
    for split, parts in shards.items():
        paths = [f"data/{split}-{i:05}-of-{len(parts):05}.parquet" for i in range(len(parts))]
        for path, rows in zip(paths, parts, strict=True):
            write_pairs(out / path, table_of(rows))
        outputs[split] = tuple(
            replace(file_of(out, path, len(rows)), extra=ids_of(rows))
            for path, rows in zip(paths, parts, strict=True)
        )
    rejected = [{**row, "reason": "distance"} for row in make_rows(2, copies=1, seed=9)]
    table = pa.Table.from_pylist(rejected, schema=REJECTED_PAIR)
    write_pairs(out / "rejects/pairs.parquet", table)
    bad = [
        {"file": "corpus.txt", "row": n, "origin": "", "text": "", "reason": reason, "detail": ""}
        for n, reason in enumerate(("too_short", "too_short", "duplicate"))
    ]
    rows_file = pa.Table.from_pylist(bad, schema=REJECTED_ROW)
    write_pairs(out / "rejects/rows.parquet", rows_file)
    rejects = (
        file_of(out, "rejects/pairs.parquet", len(rejected)),
        file_of(out, "rejects/rows.parquet", len(bad)),
    )
    write_manifest(out, outputs, rejects, shards)
    return out


def write_manifest(
    out: Path,
    outputs: dict[str, tuple[File, ...]],
    rejects: tuple[File, File],
    shards: dict[str, Any],
) -> None:
    rows = [row for parts in shards.values() for part in parts for row in part]
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "configuration": {"seed": 42, "prior": {"noise": 0.2}},
        "versions": {"pyarrow": pa.__version__},
        "tables": {"readings": "0" * 64},
        "inputs": (File("corpus.txt", "1" * 64, 10, 20),),
        "outputs": outputs,
        "rows": Counts(20, 17, {"too_short": 2, "duplicate": 1}),
        "pairs": Counts(len(rows) + rejects[0].rows, len(rows), {"distance": rejects[0].rows}),
        "operators": dict(sorted(Counter(row["operator"] for row in rows).items())),
        "calibration": (Calibration("noise", 0.037, 0.041, 0.02, 0.0411),),
        "cosine": Cosine("test-encoder", 0.65, "sample", 7),
        "rejects": rejects,
        "about": ABOUT,
        "origins": (Origin("测试", "cc0-1.0", 17, 300),),
        "extra": {"examples": [["noise", "你好", "你#好"]]},
    }
    bare = Manifest(**fields)
    (out / "README.md").write_text(make_card(bare), encoding="utf-8")
    documents = (file_of(out, "README.md"),)
    (out / "manifest.json").write_bytes(encode_manifest(Manifest(**fields, documents=documents)))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Two train shards and one validation shard."""
    train = make_rows(65)
    middle = train[len(train) // 2]["id"]
    parts = [[r for r in train if r["id"] < middle], [r for r in train if r["id"] >= middle]]
    validation = make_rows(20, first=65)
    return write_dataset(tmp_path / "out", {"train": parts, "validation": [validation]})


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """A dataset of exactly these shards of rows, whatever they are worth: build(train=[rows])."""
    return lambda **shards: write_dataset(tmp_path / "built", shards)


@pytest.fixture
def edited_row() -> Callable[[str, int, list[Corruption]], Row]:
    """A valid row with these edits: edited_row(target, copy, edits)."""
    return make_row


@pytest.fixture
def rows() -> list[Row]:
    """Forty-odd valid rows to spoil."""
    return make_rows(15)


@pytest.fixture
def table(rows: list[Row]) -> pa.Table:
    """The same as a table."""
    return table_of(rows)
