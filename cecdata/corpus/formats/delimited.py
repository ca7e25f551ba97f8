"""Comma- and tab-separated values with a header line."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.formats.base import Format
from cecdata.corpus.lines import blocks
from cecdata.corpus.rows import EXCERPT, Columns, Reject, Rows, gather
from cecdata.corpus.sources import Source, opened


def _read_csv(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Read CSV (RFC 4180): a quoted field may hold commas, quotes and line ends."""
    return _read(source, columns, batch_rows, delimiter=",", quoting=csv.QUOTE_MINIMAL)


def _read_tsv(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Read TSV: tabs separate, nothing quotes, so a quotation mark is a character."""
    return _read(source, columns, batch_rows, delimiter="\t", quoting=csv.QUOTE_NONE)


_Record = tuple[int, list[str]]  # number of its first line, fields


class _Feed:
    """The lines of a file for `csv.reader`, with a way back to after a broken record's first line.

    A quotation mark that never closes would otherwise swallow every good row after it.
    Undecodable bytes become surrogates U+DC80..U+DCFF, which the fields still hold.
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
        """Put all lines of the record but the first back, and return the first."""
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
        shape = header.index(picked.text), _place(header, picked.origin), len(header)
        yield from _batches(feed, records, source, shape, batch_rows)


def _place(header: list[str], name: str | None) -> int | None:
    return None if name is None else header.index(name)


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
    shape: tuple[int, int | None, int],
    batch_rows: int,
) -> Iterator[Rows]:
    text_at, origin_at, width = shape
    texts: list[bytes] = []
    origins: list[str] = []
    rows: list[int] = []
    for record in records:
        if len(rows) + len(feed.rejects) >= batch_rows:
            yield _flush(feed, source, texts, origins, rows)
        if record is None:
            continue
        row, fields = record
        if fields and len(fields) != width:
            shown = _readable(",".join(fields))[:EXCERPT]
            detail = f"{len(fields)} fields, the header has {width}"
            feed.rejects.append(Reject(row, source.origin, shown, "invalid_csv", detail))
            continue
        texts.append(fields[text_at].encode("utf-8", "surrogateescape") if fields else b"")
        named = fields[origin_at] if fields and origin_at is not None else ""
        origins.append(_readable(named) or source.origin)
        rows.append(row)
    yield _flush(feed, source, texts, origins, rows)


def _flush(
    feed: _Feed, source: Source, texts: list[bytes], origins: list[str], rows: list[int]
) -> Rows:
    text, origin = pa.array(texts, pa.binary()), pa.array(origins, pa.string())
    gathered = gather(source, text, origin, np.array(rows, dtype=np.int64), feed.rejects)
    for pending in (texts, origins, rows, feed.rejects):
        pending.clear()
    return gathered


def _readable(field: str) -> str:
    return field.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


CSV = Format(_read_csv, (".csv",))
TSV = Format(_read_tsv, (".tsv",))
