"""A file of a corpus, or standard input: its name, its format, its bytes and its columns."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from cecdata.common.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = "-"
UTF8 = "utf-8"
MAX_BYTES = 1_000_000  # a longer line or value is rejected unread
EXCERPT = 200  # code points of a rejected long text that are kept


class Record(NamedTuple):
    """A row as it stands in a file: the number of its first line, and its value."""

    row: int
    value: object


class Reject(NamedTuple):
    """A row that was rejected, and why."""

    row: int
    origin: str
    text: str
    reason: str
    detail: str


def make_excerpt(value: bytes) -> str:
    """Return the beginning of a text that is too long to keep."""
    return value[: 4 * EXCERPT].decode("utf-8", "backslashreplace")[:EXCERPT]


def parse_json(line: bytes) -> object:
    """Return the value that a line of JSON holds, or None for another line."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _open_zstd(path: Path) -> Any:
    import pyarrow as pa

    # Arrow's own `read` loses the memory for the bytes that it cannot read.
    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))


# suffix → what opens such a file for its decompressed bytes
COMPRESSIONS: Mapping[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".zst": _open_zstd,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a corpus: where it is, its name in messages, and how it is read."""

    path: Path | None  # None: standard input
    label: str  # as the user wrote it; goes into `file` and the manifest
    format: str  # a name in `formats.FORMATS`
    compression: str = ""  # one of COMPRESSIONS, or ""
    suffix: str = ""  # the part of the name that stands for the format
    encoding: str = UTF8  # of a text format; a table's text is UTF-8
    licence: str = ""  # of rows that name none; "": not stated
    problem: str = ""  # the reason why the file is rejected unread
    detail: str = ""
    guessed: bool = False  # the user did not name the format
    groups: tuple[int, int] | None = None  # first and last + 1 of the row groups; None: all
    before: int = 0  # rows of the row groups before these

    @property
    def origin(self) -> str:
        """Return the origin of rows without one of their own: the file's name without suffixes."""
        if self.path is None:
            return "stdin" if self.label == STDIN else self.label
        name = self.path.name.encode("utf-8", "backslashreplace").decode()
        name = name.removesuffix(self.compression)
        return name.removesuffix(self.suffix) or name


@dataclass(frozen=True, slots=True)
class Rows:
    """One step of reading: `batch` has the schema ROW, `rejected` REJECTED_ROW."""

    batch: pa.RecordBatch
    rejected: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Format:
    """The readers of one format, and the suffixes of its files.

    `read(source, text_column, batch_rows)` yields the rows of one file in their order, in batches
    of about `batch_rows` or of a few megabytes, in constant memory; `text_column` is the column
    that the user named, or None. It rejects a bad row and raises
    InputError for a bad file. `records(source)` yields all that each row holds, or the Reject of a
    bad one: a line, the cells of a row, a value of JSON or both sides of a pair. Bytes of a string
    that are not UTF-8 are lone surrogates.
    """

    read: Callable[[Source, str | None, int], Iterator[Rows]]
    records: Callable[[Source], Iterator[Record | Reject]]
    suffixes: tuple[str, ...]
    columns: bool = True  # False: a row is a text without further columns
    stream: bool = True  # False: cannot be read compressed or from standard input


class DamagedError(InputError):
    """A file whose compressed data is damaged or ends too early; the rows before that are good."""


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """Open a source for its decompressed bytes.

    Raises InputError if the file cannot be read, and DamagedError if compressed data is damaged.
    """
    try:
        with _open_bytes(source) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise DamagedError(_describe_damage(source, error)) from error
    except OSError as error:
        damaged = source.compression and not isinstance(error, (FileNotFoundError, PermissionError))
        raise (DamagedError if damaged else InputError)(describe_error(source, error)) from error


def _open_bytes(source: Source) -> IO[bytes]:
    """Return the stream of the decompressed bytes of a file, or of standard input."""
    if source.path is None:
        if sys.stdin is None:  # the shell's `<&-`
            raise InputError("standard input is closed: pipe a corpus into it, or name a file")
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    if not source.compression:
        return source.path.open("rb")
    stream: IO[bytes] = COMPRESSIONS[source.compression](source.path)
    return stream


def describe_error(source: Source, error: OSError) -> str:
    """Return the message for an error of the operating system on this source."""
    if isinstance(error, FileNotFoundError):
        return f"{source.label}: there is no such file"
    if isinstance(error, PermissionError):
        return f"{source.label}: this user may not read the file (permission denied)"
    if source.compression:
        return _describe_damage(source, error)
    return f"{source.label}: cannot be read ({error.strerror or error})"


def _describe_damage(source: Source, error: Exception) -> str:
    """Return the message for a file of which only the beginning decompresses."""
    return (
        f"{source.label}: only its beginning was read, because the compressed data is damaged or "
        f"incomplete ({error}). Download or compress the file again."
    )


# The columns, or JSON keys, that hold the text, its origin and its licence.

DEFAULT_TEXT = "text"
DEFAULT_ORIGIN = "origin"
DEFAULT_LICENCES = ("licence", "license")


def pick_columns(
    text_column: str | None, available: Sequence[str], strings: Sequence[str], label: str
) -> Picked:
    """Return the columns to read; `strings` are those that hold text.

    `text_column` is the one that the user named. Raises InputError for a column that is missing,
    occurs twice or does not hold strings.
    """
    text = text_column or pick_text(available, strings, label)
    if text not in available:
        raise InputError(explain_unknown_column(text, available, label))
    if text not in strings:
        raise InputError(
            f"{label}: column {text!r} does not hold strings. Name a column of strings with "
            f"--text-column: {', '.join(strings) or 'this file has none'}"
        )
    origin = DEFAULT_ORIGIN if DEFAULT_ORIGIN in available else None
    licence = next((name for name in DEFAULT_LICENCES if name in strings), None)
    for name in (text, origin, licence):
        if name is not None and available.count(name) > 1:
            raise InputError(
                f"{label}: {available.count(name)} columns have the name {name!r}: rename or "
                "remove all but one"
            )
    return Picked(text, origin, licence)


class Picked(NamedTuple):
    """The columns to read; None: the file's name is the origin, --licence gives the licence."""

    text: str
    origin: str | None
    licence: str | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the columns to read, each once."""
        return list(dict.fromkeys(name for name in self if name is not None))


def explain_unknown_column(name: str, available: Sequence[str], label: str) -> str:
    """Return the message for a column that does not exist."""
    return f"{label}: no column {name!r}; {did_you_mean(name, list(available))}"


def pick_text(available: Sequence[str], strings: Sequence[str], label: str) -> str:
    """Return `text`, or the only column of strings; raise InputError if there is neither."""
    if DEFAULT_TEXT in available:
        return DEFAULT_TEXT
    candidates = [name for name in strings if name not in (DEFAULT_ORIGIN, *DEFAULT_LICENCES)]
    if len(candidates) == 1:
        return candidates[0]
    raise InputError(
        f"{label}: no column {DEFAULT_TEXT!r}. Name the column of the sentences with "
        f"--text-column: {', '.join(available) or 'the file has no columns'}"
    )
