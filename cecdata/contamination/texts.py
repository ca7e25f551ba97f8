"""The texts of a file, row by row: fields of lines and tables, strings of JSON, sides of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.formats import FORMATS
from cecdata.corpus.inputs import resolve
from cecdata.corpus.sources import Source, rows_known

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
    return resolve([name])


def _rows(source: Source) -> Iterator[Texts]:
    """Yield the texts of one file, whose rows count from 0 in each batch."""
    held: list[list[str]] = []
    for value in FORMATS[source.format].values(source):
        if isinstance(value, pa.RecordBatch):
            yield _of_batch(value)
            continue
        held.append(list(_strings(value)))
        if len(held) == _ROWS:
            yield _of_lists(held)
            held = []
    if held:
        yield _of_lists(held)


def _of_batch(batch: pa.RecordBatch) -> Texts:
    columns: list[pa.Array] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if name.lower() in _NOT_TEXT:
            continue
        if pa.types.is_string_view(plain.type):
            plain = plain.cast(pa.string())
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
