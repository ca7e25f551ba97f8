"""The comparison of the files on disk with those of the manifest, without reading a row.

It checks presence, size and Parquet footer, in a few milliseconds per shard. A reader runs it
before it trusts a folder, and it is the first step of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.shards.manifest import POOL, File, Manifest
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR, REJECTED_ROW, as_written

# Folders that may hold only files that the manifest names.
OWNED = ("data", "rejects")
_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference from the manifest; `path` is relative to the dataset."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def take_inventory(out: Path, manifest: Manifest) -> tuple[Problem, ...]:
    """Return every missing, resized, unreadable or foreign file, in the order of the manifest."""
    problems = [Problem(record.path, what) for record, what in _misfits(out, manifest)]
    known = {record.path for record in manifest.files()}
    for folder in OWNED:
        problems += (
            Problem(path, "is not in the manifest: a foreign file")
            for path in _paths_below(out, folder)
            if path not in known
        )
    return tuple(problems)


def _misfits(out: Path, manifest: Manifest) -> Iterator[tuple[File, str]]:
    shards = {record.path for records in manifest.outputs.values() for record in records}
    for record in manifest.files():
        row = POOLED if manifest.kind == POOL else PAIR
        schemas = (row,) if record.path in shards else (REJECTED_PAIR, REJECTED_ROW)
        allowed = tuple(as_written(schema, manifest.schema_version) for schema in schemas)
        what = _misfit(out / record.path, record, allowed)
        if what:
            yield record, what


def _misfit(path: Path, record: File, allowed: tuple[pa.Schema, ...]) -> str:
    """Return what is wrong with one file, or ''."""
    try:
        size = path.stat().st_size
    except OSError as error:
        return "is missing" if isinstance(error, FileNotFoundError) else f"{error.strerror}"
    if not path.is_file():
        return "is not a file"
    if size != record.bytes:
        return f"has {size:,} bytes instead of {record.bytes:,}"
    if path.suffix != _SUFFIX:
        return ""
    try:
        with pq.ParquetFile(path) as file:
            rows, schema = file.metadata.num_rows, file.schema_arrow
    except Exception as error:  # noqa: BLE001 - a damaged footer may raise any exception
        return f"has no readable Parquet footer ({_first_line(error)})"
    if rows != record.rows:
        return f"has {rows:,} rows instead of {record.rows:,}"
    if not any(schema.equals(wanted) for wanted in allowed):
        return f"has other columns than this schema version: {', '.join(schema.names)}"
    return ""


def _paths_below(out: Path, folder: str) -> list[str]:
    root = out / folder
    if not root.is_dir():
        return []
    return sorted(
        path.relative_to(out).as_posix()
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
