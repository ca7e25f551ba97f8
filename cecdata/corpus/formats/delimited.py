"""Comma- and tab-separated values with a header line."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.columns import Columns
from cecdata.corpus.formats.base import Format
from cecdata.corpus.lines import blocks
from cecdata.corpus.rows import EXCERPT, Reject, Rows, gather
from cecdata.corpus.sources import Source, opened


def _read_csv(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Read CSV (RFC 4180): a quoted field may hold commas, quotes and line ends."""
    return _read(source, columns, batch_rows, delimiter=",", quoting=csv.QUOTE_MINIMAL)


def _read_tsv(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Read TSV: fields are separated by tabs, and a quotation mark is an ordinary character."""
    return _read(source, columns, batch_rows, delimiter="\t", quoting=csv.QUOTE_NONE)


_Record = tuple[int, list[str]]  # number of its first line, fields


class _Feed:
    """The lines of a file for `csv.reader`; after a broken record, its second line is read next.

    A quotation mark that never closes would otherwise swallow every good row after it.
    Undecodable bytes become surrogates U+DC80..U+DCFF, which stay in the fields.
    """

    def __init__(self, stream: IO[bytes], source: Source) -> None:
        self._blocks = blocks(stream, source)
        self._ahead: deque[tuple[int, str]] = deque()
        self.taken: list[tuple[int, str]] = []
        self.rejects: list[Reject] = []

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        while not self._ahead:
            block = next(self._blocks)
            self.rejects.extend(block.rejects)
            lines = block.data.split(b"\n")[:-1]
            texts = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
            self._ahead.extend(enumerate(texts, block.first_line))
        self.taken.append(self._ahead.popleft())
        return self.taken[-1][1]

    def start_record(self) -> None:
        """Forget the lines of the last record."""
        self.taken.clear()

    def give_back(self) -> tuple[int, str]:
        """Put back all lines of the record except the first, and return the first."""
        first, *rest = self.taken
        self._ahead.extendleft(reversed(rest))
        return first


def _read(
    source: Source, columns: Columns, batch_rows: int, *, delimiter: str, quoting: int
) -> Iterator[Rows]:
    with opened(source) as stream:
        feed = _Feed(stream, source)
        records = _records(feed, source, delimiter, quoting)
        first, header = next(records, None) or (0, [])
        if not first and not feed.rejects:
            return  # an empty file
        if first != 1 or not header:
            raise InputError(f"{source.label}: its first line must name the columns")
        picked = columns.pick(header, header, source.label)
        places = [
            None if name is None else header.index(name)
            for name in (picked.text, picked.origin, picked.licence)
        ]
        yield from _batches(feed, records, source, places, len(header), batch_rows)


def _records(feed: _Feed, source: Source, delimiter: str, quoting: int) -> Iterator[_Record | None]:
    """Yield (line number, fields) of every sound record, and None for a rejected one."""
    reader = csv.reader(feed, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    while True:
        feed.start_record()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row, line = feed.give_back()
            shown = _readable(line.rstrip("\n"))[:EXCERPT]
            feed.rejects.append(Reject(row, source.origin, shown, "invalid_csv", str(error)))
            reader = csv.reader(feed, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
            yield None
            continue
        yield feed.taken[0][0], fields


def _batches(
    feed: _Feed,
    records: Iterator[_Record | None],
    source: Source,
    places: list[int | None],
    width: int,
    batch_rows: int,
) -> Iterator[Rows]:
    texts: list[bytes] = []
    names: tuple[list[str | None], list[str | None]] = [], []  # origins, licences
    rows: list[int] = []
    for record in records:
        if len(rows) + len(feed.rejects) >= batch_rows:
            yield _flush(feed, source, texts, names, rows)
        if record is None:
            continue
        row, fields = record
        if fields and len(fields) != width:
            shown = _readable(",".join(fields))[:EXCERPT]
            detail = f"{len(fields)} fields, the header has {width}"
            feed.rejects.append(Reject(row, source.origin, shown, "invalid_csv", detail))
            continue
        text, *named = ("" if at is None or not fields else fields[at] for at in places)
        texts.append(text.encode("utf-8", "surrogateescape"))
        for column, name in zip(names, named, strict=True):
            column.append(_readable(name) or None)
        rows.append(row)
    yield _flush(feed, source, texts, names, rows)


def _flush(
    feed: _Feed,
    source: Source,
    texts: list[bytes],
    names: tuple[list[str | None], list[str | None]],
    rows: list[int],
) -> Rows:
    text = pa.array(texts, pa.binary())
    origin, licence = (pa.array(column, pa.string()) for column in names)
    numbers = np.array(rows, dtype=np.int64)
    gathered = gather(source, text, origin, numbers, feed.rejects, licence)
    for pending in (texts, *names, rows, feed.rejects):
        pending.clear()
    return gathered


def _readable(field: str) -> str:
    return field.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


CSV = Format(_read_csv, (".csv",))
TSV = Format(_read_tsv, (".tsv",))
