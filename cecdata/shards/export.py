"""Pairs in the formats of other tools, written row by row in constant memory.

docs/howto/export.md lists the fields of each format, and the tools that read it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from cecdata.common import durable
from cecdata.common.errors import RefusedError, UsageError, did_you_mean
from cecdata.shards.export_files import FILES, FOLDERS
from cecdata.shards.export_text import TEXT
from cecdata.shards.reader import open_dataset

_ROWS = 8_192


def export(
    out: str | Path,
    split: str,
    path: Path,
    format: str = "jsonl",  # noqa: A002
    progress: Callable[[int, int], None] = lambda _rows, _all: None,
) -> int:
    """Write a split of the dataset `out` to the file `path`; return the number of rows.

    `progress` gets the number of rows of each batch and of the split. The file (for `mds` a folder)
    is written completely or not at all. Raises UsageError for an unknown format or split,
    RefusedError for a path inside the dataset, VerificationError for a damaged shard, and
    DiskFullError.
    """
    if format not in FORMATS:
        raise UsageError(f"no format {format!r}; {did_you_mean(format, list(FORMATS))}")
    if path.resolve().is_relative_to(Path(out).resolve()):
        raise RefusedError(
            f"{path} is inside the dataset {out}, whose files an export must not change: write to "
            "another folder"
        )
    dataset = open_dataset(out)

    total = dataset.rows(split)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in dataset.batches(split, rows=_ROWS):
            yield batch
            progress(batch.num_rows, total)

    if format not in TEXT:
        _write_binary(batches(), split, path, format)
        return total

    def pieces() -> Iterator[str]:
        return TEXT[format](row for batch in batches() for row in batch.to_pylist())

    def fill(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces())

    def size() -> int:
        return sum(len(piece.encode()) for piece in pieces())

    durable.write(path, fill, expected_bytes=size)
    return total


def _write_binary(batches: Iterator[pa.RecordBatch], split: str, path: Path, form: str) -> None:
    """Write a format of FILES or FOLDERS; the folder of the latter must not exist."""
    if form in FILES:
        durable.write(path, lambda temporary: FILES[form](batches, temporary, split))
        return
    if path.exists():
        raise RefusedError(f"{path} exists: name a new folder for {form}")
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as beside:
        staged = Path(beside) / "staged"
        FOLDERS[form](batches, staged, split)
        durable.publish(staged, path)


FORMATS = (*TEXT, *FILES, *FOLDERS)
SUFFIXES = {"parquet": "hf", "tar": "webdataset", "json": "pycorrector"}
