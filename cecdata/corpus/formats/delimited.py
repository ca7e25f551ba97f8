"""Comma- and tab-separated values with a header line, in the dialects that programs write.

A field in quotation marks may hold delimiters, quotation marks and line ends (RFC 4180). In TSV a
quotation mark is an ordinary character, unless the file's first lines, or a field alone, show that
their writer quoted. Another delimiter than the usual one is noticed by the header.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO

import numpy as np

from cecdata.common.errors import InputError
from cecdata.common.text import SEP
from cecdata.corpus import sources
from cecdata.corpus.characters import INVISIBLE, WHITESPACE
from cecdata.corpus.lines import BLOCK_BYTES, Block, split_blocks
from cecdata.corpus.sources import Record, Reject, Rows, Source

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_LOOK = 50  # lines that show the dialect
HAS_SENTENCE = re.compile("[，。！？；：…]|[一-鿿]{12}").search  # a column's name has none
_EDGES = re.compile(f"^[{WHITESPACE}{INVISIBLE}]+|[{WHITESPACE}{INVISIBLE}]+$")
# A field that a writer has certainly quoted: in it are doubled quotation marks alone, or tabs or
# line ends. The last line of several that show the dialect may end within a field.
_QUOTED = re.compile(r'"(?=.*(?:""|[\t\n]))(?:[^"]|"")*"', re.DOTALL)
_FIELD = re.compile(r'("(?:[^"]|"")*"|[^"\t\n]*)(?:\t|\n|\Z)|"(?:[^"]|"")*\Z')
_TABLE = re.compile(f"(?:{_FIELD.pattern})*")
# A quotation mark that never closes takes no more than this. A file has few such marks, because the
# next one closes it.
_MOST_CHARS, _MOST_LINES = 1 << 24, 1 << 18
csv.field_size_limit(_MOST_CHARS)  # of the whole process; a longer text is rejected later


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a table is written; `quoting` is a constant of the module csv."""

    delimiter: str
    quoting: int
    spaces: bool = False  # one after each delimiter
    guessed: bool = False  # by lines that are alike; no name of a column shows it

    def reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Return an iterator over the records of these lines, each a list of fields."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quoting=self.quoting,  # type: ignore[arg-type]
            skipinitialspace=self.spaces,
            strict=True,
        )


def _find_dialect(lines: Sequence[str], usual: str, text: str | None) -> _Dialect:
    """Return the dialect of a file that begins with these lines; see `_find_delimiter`."""
    header = lines[0] if lines else ""
    delimiter, guessed = _find_delimiter(lines, usual, text)
    with_space = header.count(f"{delimiter} ")
    spaces = delimiter != "\t" and 0 < with_space == header.count(delimiter)
    quoted = delimiter != "\t" or _is_quoted(lines)
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    return _Dialect(delimiter, quoting, spaces, guessed)


def _find_delimiter(lines: Sequence[str], usual: str, text: str | None) -> tuple[str, bool]:
    """Return the delimiter of a file that begins with these lines, and whether it is a guess.

    `usual` is that of the format; a column `text` that it does not separate shows another. Without
    `text`, tabs separate the columns of a file of tabs, whatever else is in it.
    """
    header = lines[0] if lines else ""
    if match := SEP.fullmatch(header.strip()):
        return match[1], False
    if len(_split_header(header, usual)) > 1 or (text is None and usual == "\t"):
        return usual, False
    others = [mark for mark in _DELIMITERS if len(_split_header(header, mark)) > 1]
    for mark in others:
        if text in _split_header(header, mark):
            return mark, False
    for mark in others:
        if _is_regular(lines, mark):
            return mark, True
    return usual, False


def _split_header(line: str, delimiter: str) -> list[str]:
    """Return the names that a header has if this delimiter separates them; else the line as one."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return [line]
    return [_EDGES.sub("", field) for field in fields]


def _is_regular(lines: Sequence[str], delimiter: str) -> bool:
    """Return whether nine lines of ten have as many fields as the header."""
    width = len(_split_header(lines[0], delimiter))
    others = [len(_split_header(line, delimiter)) == width for line in lines[1:_LOOK]]
    return sum(others) >= 0.9 * len(others)


def _is_quoted(lines: Sequence[str]) -> bool:
    """Return whether a writer of CSV quoted the fields of these lines, which tabs separate."""
    text = "\n".join(lines[:_LOOK])
    if '"' not in text or not _TABLE.fullmatch(text):
        return False
    fields = [field for field in _FIELD.findall(text) if field]
    quoted = [field for field in fields if field[0] == '"']
    return 0 < len(quoted) == len(fields) or any(map(_QUOTED.fullmatch, quoted))


_Record = tuple[int, list[str]]  # number of its first line, fields


class _Feed:
    """The lines of a file for `csv.reader`; after a broken record, its second line is read next.

    A quotation mark that never closes would otherwise swallow every good row after it.
    Undecodable bytes become surrogates U+DC80..U+DCFF, which stay in the fields.
    """

    def __init__(self, stream: IO[bytes], source: Source) -> None:
        self._blocks = split_blocks(stream, source)
        self._ahead: deque[tuple[int, str]] = deque()  # lines with their numbers, not yet read
        self.record_lines: list[tuple[int, str]] = []  # the same of the record that is read
        self.rejects: list[Reject] = []  # rows that are rejected, until a reader takes them

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        """Return the next line, and add it to `record_lines`, those of the record that is read."""
        while not self._ahead:
            self._queue_lines(next(self._blocks))
        if len(self.record_lines) == _MOST_LINES:
            raise csv.Error(f"a quotation mark is not closed within {_MOST_LINES:,} lines")
        self.record_lines.append(self._ahead.popleft())
        return self.record_lines[-1][1]

    def _queue_lines(self, block: Block) -> None:
        """Decode the lines of a block, and queue them with their numbers."""
        self.rejects.extend(block.rejects)
        lines = block.data.split(b"\n")[:-1]
        texts = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
        self._ahead.extend(enumerate(texts, block.first_line))

    def peek_lines(self) -> list[str]:
        """Return the next lines, at most `_LOOK`, without taking them; they are of one block."""
        for block in self._blocks:
            self._queue_lines(block)
            if self._ahead:
                break
        return [line.rstrip("\n") for _, line in islice(self._ahead, _LOOK)]

    def give_back(self) -> tuple[int, str]:
        """Put back all lines of the record except the first, and return the first."""
        first, *rest = self.record_lines
        self._ahead.extendleft(reversed(rest))
        return first


_Table = tuple[_Feed, _Dialect, Iterator[_Record | None]]


def _open_table(stream: IO[bytes], source: Source, delimiter: str, text: str | None) -> _Table:
    """Return the lines of a file, its dialect and its records; a line `sep=` is skipped."""
    feed = _Feed(stream, source)
    lines = feed.peek_lines()
    dialect = _find_dialect(lines, delimiter, text)
    if lines and SEP.fullmatch(lines[0].strip()):
        next(feed)
    return feed, dialect, _parse_records(feed, source, dialect)


def _read_rows(
    delimiter: str, source: Source, text_column: str | None, batch_rows: int
) -> Iterator[Rows]:
    """Yield the records of a file that separates its columns by a delimiter."""
    with sources.open_source(source) as stream:
        text = text_column or sources.DEFAULT_TEXT
        feed, dialect, records = _open_table(stream, source, delimiter, text)
        first, names = next(records, None) or (0, [])  # 0: no record, or one that is rejected
        if not first and not feed.rejects:
            return  # an empty file
        header = [_EDGES.sub("", name) for name in names]
        if dialect.guessed:
            raise InputError(
                f"{source.label}: {_DELIMITERS[dialect.delimiter]} seems to separate the columns "
                f"{', '.join(header)}. Name the column of the sentences with --text-column, or "
                f"write the file with {_DELIMITERS[delimiter]}"
            )
        if first not in (1, 2) or not any(header):  # 2: behind a line `sep=`
            raise InputError(f"{source.label}: its first line must name the columns")
        if text_column is None and sources.DEFAULT_TEXT not in header:
            _refuse_sentences(header, delimiter, source)
        picked = sources.pick_columns(text_column, header, header, source.label)
        columns = [None if name is None else header.index(name) for name in picked]
        yield from _read_batches(feed, records, source, columns, len(header), batch_rows)


def _refuse_sentences(header: Sequence[str], delimiter: str, source: Source) -> None:
    """Raise InputError if the first line has a sentence in place of names of columns."""
    sentence = next(filter(HAS_SENTENCE, header), "")
    if sentence:
        line = f"put a line such as {delimiter.join(('text', 'origin'))!r} before it"
        raise InputError(
            f"{source.label}: its first line must name the columns, but has the sentence "
            f"{sentence[:40]!r}: "
            + (line if len(header) > 1 else "if each line is a sentence, add --format text")
        )


def _read_records(delimiter: str, source: Source) -> Iterator[Record | Reject]:
    """Yield the fields of each row, also of the header, and each row that has none."""
    with sources.open_source(source) as stream:
        feed, _, records = _open_table(stream, source, delimiter, None)
        for record in records:
            if record is not None:
                row, fields = record
                yield Record(row, fields or [""])
            yield from feed.rejects
            feed.rejects.clear()
        yield from feed.rejects


def _parse_records(feed: _Feed, source: Source, dialect: _Dialect) -> Iterator[_Record | None]:
    """Yield (line number, fields) of every sound record, and None for a rejected one."""
    reader = dialect.reader(feed)
    while True:
        feed.record_lines.clear()  # the lines of the last record
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row, line = feed.give_back()
            shown = _make_readable(line.rstrip("\n"))[: sources.EXCERPT]
            feed.rejects.append(Reject(row, source.origin, shown, "invalid_csv", str(error)))
            reader = dialect.reader(feed)
            yield None
            continue
        if dialect.quoting == csv.QUOTE_NONE:
            fields = [_unquote(field) if field[:1] == '"' else field for field in fields]
        yield feed.record_lines[0][0], fields


def _unquote(field: str) -> str:
    """Return a field without the quotation marks of a writer of CSV, if it certainly has them."""
    return field[1:-1].replace('""', '"') if _QUOTED.fullmatch(field) else field


def _read_batches(
    feed: _Feed,
    records: Iterator[_Record | None],
    source: Source,
    columns: list[int | None],
    width: int,
    batch_rows: int,
) -> Iterator[Rows]:
    """Yield batches of records of `width` fields; `columns` are of text, origin and licence."""
    batch: list[_Record] = []
    size = 0  # characters
    for record in records:
        if len(batch) + len(feed.rejects) >= batch_rows or size >= BLOCK_BYTES:
            yield _gather_rows(feed, source, batch, columns)
            batch, size = [], 0
        if record is None:
            continue
        row, fields = record
        if fields and len(fields) != width:
            shown = _make_readable(",".join(fields))[: sources.EXCERPT]
            detail = f"{len(fields)} fields, the header has {width}"
            feed.rejects.append(Reject(row, source.origin, shown, "invalid_csv", detail))
            continue
        batch.append(record)
        size += sum(map(len, fields))
    yield _gather_rows(feed, source, batch, columns)


def _gather_rows(
    feed: _Feed, source: Source, records: list[_Record], columns: list[int | None]
) -> Rows:
    """Return the rows of records, and the feed's rejects, which it then has no more.

    columns: those of the text, the origin and the licence, None for one that the file lacks. An
    empty line has no fields, and an empty text.
    """
    import pyarrow as pa

    from cecdata.corpus.rows import build_rows

    def list_fields(column: int | None) -> list[str] | None:
        if column is None:
            return None
        return [fields[column] if fields else "" for _, fields in records]

    texts, *names = map(list_fields, columns)
    text = [field.encode("utf-8", "surrogateescape") for field in texts or ()]
    origin, licence = (
        None if listed is None else pa.array(map(_make_readable, listed), pa.string())
        for listed in names
    )
    rejects, feed.rejects = feed.rejects, []
    numbers = np.array([row for row, _ in records], np.int64)
    return build_rows(source, pa.array(text, pa.binary()), origin, numbers, rejects, licence)


def _make_readable(field: str) -> str:
    """Return a field with \\xNN in place of each byte that is not UTF-8."""
    return field.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


CSV = sources.Format(partial(_read_rows, ","), partial(_read_records, ","), (".csv",))
TSV = sources.Format(partial(_read_rows, "\t"), partial(_read_records, "\t"), (".tsv",))
