"""The texts of a file, row by row: fields of lines and tables, strings of JSON, sides of pairs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cecdata.common.errors import InputError
from cecdata.corpus.inputs import resolve
from cecdata.corpus.sources import Source, opened, rows_known

# Texts, the row of each, and the number of rows of which these are texts.
Texts: TypeAlias = "tuple[pa.Array, npt.NDArray[np.int64], int]"
_ROWS = 16_384
# Fields that name or label a row: in these, equal values mean nothing.
_NOT_TEXT = frozenset(
    (
        *("id", "sid", "pid", "index", "copy", "origin", "operator", "edits", "file", "row", "url"),
        *("link", "licence", "license", "domain", "category", "type", "kind", "label", "labels"),
        *("reason", "lang", "language", "split", "date", "time", "author", "role", "from"),
    )
)


def texts(name: str) -> Iterator[Texts]:
    """Yield the texts of a file, a glob or a dataset folder, all texts of a row in one batch.

    Rows are numbered from 1, continuing from file to file. A row is a line (with its fields between
    tabs), a row of a table, or a JSON object or element. Fields such as `id` and `origin` are left
    out. Raises InputError for a file that cannot be read.
    """
    first = 1
    for source in _sources(name):
        for text, rows, count in _rows(source):
            yield text, rows + first, count
            first += count


def counted(names: Sequence[str]) -> int | None:
    """Return the number of rows of Parquet files, or None if another file is among them."""
    return rows_known([source for name in names for source in _sources(name)])


def _sources(name: str) -> list[Source]:
    path = Path(name)
    if path.is_file() and path.suffix in (".json", ".m2"):
        return [Source(path, name, path.suffix[1:])]
    return resolve([name])


def _rows(source: Source) -> Iterator[Texts]:
    """Yield the texts of one file, whose rows count from 0 in each batch."""
    if source.format in _TABLES and source.path is not None:
        try:
            yield from map(_of_batch, _TABLES[source.format](source.path))
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{source.label}: cannot be read ({error})") from error
    else:
        rows = _parsed(source)
        while part := list(islice(rows, _ROWS)):
            yield _of_lists(part)


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        names = [name for name in file.schema_arrow.names if name.lower() not in _NOT_TEXT]
        yield from file.iter_batches(batch_size=_ROWS, columns=names)


def _arrow(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:  # the format of a stream, which `datasets` writes
            file.seek(0)
            yield from pa.ipc.open_stream(file)
        else:
            yield from (reader.get_batch(n) for n in range(reader.num_record_batches))


_TABLES = {"parquet": _parquet, "arrow": _arrow}


def _of_batch(batch: pa.RecordBatch) -> Texts:
    columns: list[pa.Array] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if name.lower() in _NOT_TEXT:
            continue
        if pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type):
            columns.append(pc.fill_null(plain.cast(pa.string()), ""))
        elif pa.types.is_nested(plain.type):
            return _of_lists([list(_strings(row)) for row in batch.to_pylist()])
    if not columns:
        return pa.array([], pa.string()), np.zeros(0, np.int64), len(batch)
    rows = np.tile(np.arange(len(batch)), len(columns))
    return pa.concat_arrays(columns), rows, len(batch)


def _of_lists(rows: list[list[str]]) -> Texts:
    counts = [len(row) for row in rows]
    text = pa.array([text for row in rows for text in row], pa.string())
    return text, np.repeat(np.arange(len(rows)), counts), len(rows)


def _parsed(source: Source) -> Iterator[list[str]]:
    if source.format == "json":
        with opened(source) as stream:
            try:
                whole = json.load(stream)
            except ValueError as error:
                raise InputError(f"{source.label}: not JSON ({error})") from error
        rows = whole if isinstance(whole, list) else [whole]
        yield from (list(_strings(row)) for row in rows)
        return
    with opened(source) as stream:
        lines = io.TextIOWrapper(stream, source.encoding, errors="replace")
        if source.format == "csv":
            yield from csv.reader(lines)
        elif source.format == "jsonl":
            yield from (list(_strings(value)) for value in _objects(lines, source))
        elif source.format == "m2":
            yield from ([line[2:]] for line in lines if line.startswith("S "))
        else:
            yield from (line.rstrip("\r\n").split("\t") for line in lines)


def _objects(lines: Iterable[str], source: Source) -> Iterator[object]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InputError(f"{source.label}, line {number}: not JSON ({error})") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        # a lone surrogate, which JSON can hold, is in no benchmark
        yield value.encode("utf-8", "replace").decode()
    elif isinstance(value, dict):
        for name, part in value.items():
            if str(name).lower() not in _NOT_TEXT:
                yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
