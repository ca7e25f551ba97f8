"""The rows that every reader of a format yields: those with sound UTF-8, and rejected ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.sources import UTF8, Columns, Source
from cecdata.shards.schema import REJECTED_ROW, ROW

_SPELT = 1 << 12  # most bytes of a line that is not UTF-8 that the rejects keep whole
MAX_BYTES = 1_000_000  # a longer line or value is rejected unread
EXCERPT = 200  # code points of a rejected long text that are kept

# `from_pylist` would import pandas
_NONE = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in REJECTED_ROW], schema=REJECTED_ROW)

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """One step of reading: `batch` has the schema ROW, `rejected` REJECTED_ROW."""

    batch: pa.RecordBatch
    rejected: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Format:
    """The readers of one format, and the suffixes of its files.

    `read(source, columns, batch_rows)` yields the rows of one file in their order, in batches of
    about `batch_rows` or of a few megabytes, in constant memory. It rejects a bad row and raises
    InputError for a bad file. `records(source)` yields all that each row holds, or the Reject of a
    bad one: a line, the cells of a row, a value of JSON or both sides of a pair. Bytes of a string
    that are not UTF-8 are lone surrogates.
    """

    read: Callable[[Source, Columns, int], Iterator[Rows]]
    records: Callable[[Source], Iterator[Record | Reject]]
    suffixes: tuple[str, ...]
    columns: bool = True  # False: a row is a text without further columns
    stream: bool = True  # False: cannot be read compressed or from standard input


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


def constant(value: str, length: int) -> pa.StringArray:
    """Return an array that repeats one string; 20 times as fast as `pa.repeat`."""
    data = value.encode("utf-8")
    offsets = np.arange(length + 1, dtype=np.int32) * len(data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data * length)]
    return pa.StringArray.from_buffers(length, buffers[1], buffers[2])


def by_reason(rejected: pa.Table | pa.RecordBatch) -> dict[str, int]:
    """Count rejected rows by their reason."""
    if not rejected.num_rows:
        return {}
    counts = rejected.column("reason").value_counts()
    reasons, numbers = (counts.field(name).to_pylist() for name in ("values", "counts"))
    return dict(zip(reasons, numbers, strict=True))


def gather(
    source: Source,
    text: pa.Array,
    origin: pa.Array | None,
    rows: Int64s,
    rejects: Sequence[Reject] = (),
    licence: pa.Array | None = None,
    rejected: pa.RecordBatch | None = None,
) -> Rows:
    """Build `Rows` from text that may hold nulls, overlong values or bytes that are not UTF-8.

    `text` is any binary or string array, or a dictionary of one; `rows` are line or row numbers
    from 1; `rejects` and `rejected` are those of the format itself; `origin` and `licence` are by
    default those of the source. A sound batch is not copied.
    """
    origin = _names(origin, source.origin, len(text))
    licence = _names(licence, source.licence or None, len(text))
    ranked = sorted(rejects, key=lambda reject: reject.row)
    refused = [{"file": source.label, **reject._asdict()} for reject in ranked]
    own = pa.RecordBatch.from_pylist(refused, REJECTED_ROW) if refused else _NONE
    rejected = own if rejected is None else _in_order(own, rejected)
    for sift in (_nulls, _too_long, _unsound, _misread):
        bad = sift(text, source)
        if bad is not None:
            rejected = _in_order(rejected, rejected_rows(source, origin, rows, bad))
            keep = pa.array(~bad.rows)
            text, origin, licence = (part.filter(keep) for part in (text, origin, licence))
            rows = rows[~bad.rows]
    text = plain(text)
    if not pa.types.is_string(text.type):
        text = _as_string(text)
    file = constant(source.label, len(text))
    arrays = [text, origin, file, pa.array(rows, pa.int64()), licence]
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=ROW), rejected)


def plain(text: pa.Array) -> pa.Array:
    """Return a dictionary array as plain texts, and any other array unchanged."""
    if not pa.types.is_dictionary(text.type):
        return text
    # Arrow reserves memory by the mean length of all texts, and unused ones may be enormous.
    used = text.indices.drop_null().unique()
    return text.dictionary.take(used).take(pc.index_in(text.indices, used))


@dataclass(frozen=True, slots=True)
class Bad:
    """The rows of a batch without sound text, [N], and for each of them its reject's columns."""

    rows: npt.NDArray[np.bool_]
    text: pa.Array
    reason: pa.Array
    detail: pa.Array


def rejected_rows(source: Source, origin: pa.Array, rows: Int64s, bad: Bad) -> pa.RecordBatch:
    """Return the bad rows of a batch; `origin` and `rows` are those of all its rows."""
    columns = {
        "file": constant(source.label, len(bad.text)),
        "row": pa.array(rows[bad.rows], pa.int64()),
        "origin": origin.filter(pa.array(bad.rows)),
        "text": bad.text,
        "reason": bad.reason,
        "detail": bad.detail,
    }
    arrays = [columns[name] for name in REJECTED_ROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=REJECTED_ROW)


def _in_order(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """Join two batches of rejected rows in the order of their rows."""
    if not one.num_rows or not other.num_rows:
        return one if one.num_rows else other
    both = pa.concat_batches([one, other])
    return both.take(pc.sort_indices(both.column("row")))


# A few hundred bytes may encode a million rows, so equal texts are checked only once.


def _nulls(text: pa.Array, _: Source) -> Bad | None:
    if not text.null_count:
        return None
    kinds = np.where(text.is_null().to_numpy(zero_copy_only=False), 0, -1)
    return _bad(kinds, [("", "no_text", "the text is missing or null")])


def readable(text: pa.Array, source: Source) -> tuple[pa.Array, list[str]]:
    """Return a column with "" for each text that is missing or bad, and what is bad of them."""
    text, reasons = plain(text).fill_null(""), list[str]()
    for sift in (_too_long, _unsound):
        if (bad := sift(text, source)) is not None:
            reasons += bad.reason.to_pylist()
            text = pc.if_else(pa.array(bad.rows), pa.scalar("", text.type), text)
    return text, reasons


def _too_long(text: pa.Array, _: Source) -> Bad | None:
    """Return the rows of more than MAX_BYTES, whose texts are not copied; none is null."""
    coded = pa.types.is_dictionary(text.type)
    values = _as_binary(text.dictionary if coded else text)
    sizes = np.asarray(pc.binary_length(values))
    faults: list[tuple[str, str, str]] = []
    kind = np.full(len(values), -1)
    for place in np.flatnonzero(sizes > MAX_BYTES).tolist():
        kind[place] = len(faults)
        head = values[place].as_buffer()[: 4 * EXCERPT].to_pybytes()
        detail = f"{sizes[place]} bytes, at most {MAX_BYTES}"
        faults.append((excerpt(head), "too_long", detail))
    return _bad(kind[text.indices.to_numpy()] if coded else kind, faults)


def _unsound(text: pa.Array, source: Source) -> Bad | None:
    """Return the rows that are not UTF-8; the text has no nulls."""
    coded = text if pa.types.is_dictionary(text.type) else None
    if _is_sound(text if coded is None else coded.dictionary):
        return None
    if coded is None:
        coded = _as_binary(text).dictionary_encode()
    faults: list[tuple[str, str, str]] = []
    kind = np.full(len(coded.dictionary), -1)
    for place, value in enumerate(_as_binary(coded.dictionary).to_pylist()):
        if (bad := fault(value, source)) is not None:
            kind[place] = len(faults)
            faults.append(bad)
    return _bad(kind[coded.indices.to_numpy()], faults)


def _bad(kinds: Int64s, faults: Sequence[tuple[str, str, str]]) -> Bad | None:
    """Return the rows with a fault, whose number `kinds` has, or -1."""
    if not faults:
        return None
    which = pa.array(kinds[kinds >= 0])
    columns = (pa.array(column, pa.string()).take(which) for column in zip(*faults, strict=True))
    return Bad(kinds >= 0, *columns)


def _misread(text: pa.Array, source: Source) -> Bad | None:
    """Return the rows of another encoding than UTF-8 that were decoded wrongly."""
    from cecdata.corpus.misread import decoded_wrongly  # late: it brings in numba

    if source.encoding == UTF8:
        return None
    bad = decoded_wrongly(_as_string(text))
    what = _reason(source), "its characters are very rare: a byte before them may be missing"
    values = _as_binary(text.filter(pa.array(bad))).to_pylist()
    kinds = np.where(bad, np.cumsum(bad) - 1, -1)
    return _bad(kinds, [(excerpt(value), *what) for value in values])


def _is_sound(text: pa.Array) -> bool:
    try:
        _as_string(text).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _as_binary(text: pa.Array) -> pa.Array:
    wide = pa.types.is_large_string(text.type) or pa.types.is_large_binary(text.type)
    return text.view(pa.large_binary() if wide else pa.binary())


def _as_string(text: pa.Array) -> pa.Array:
    """Return a string array over the same bytes, unchecked; 64-bit offsets become 32-bit ones."""
    if pa.types.is_binary(text.type):
        return text.view(pa.string())
    if pa.types.is_large_binary(text.type):
        text = text.view(pa.large_string())
    return text if pa.types.is_string(text.type) else text.cast(pa.string())


def fault(value: bytes, source: Source) -> tuple[str, str, str] | None:
    """Return what is wrong with one value, if anything: (text to show, reason, detail)."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
    else:
        return None
    if source.encoding != UTF8:  # each damaged byte became a lone surrogate, of three bytes
        value = re.sub(
            b"\xed[\xb0-\xb3][\x80-\xbf]",
            lambda match: bytes([ord(match[0].decode("utf-8", "surrogatepass")) & 0xFF]),
            value,
        )
    detail = f"byte 0x{value[at]:02X} at byte {at}"
    # Escaping a megabyte of undecodable bytes takes a quarter of a second.
    if len(value) > _SPELT:
        return excerpt(value), _reason(source), f"{detail}; an excerpt of {len(value)} bytes"
    return value.decode("utf-8", "backslashreplace"), _reason(source), detail


def _reason(source: Source) -> str:
    return f"invalid_{source.encoding.replace('-', '')}"


def excerpt(value: bytes) -> str:
    """Return the beginning of a text that is too long to keep."""
    return value[: 4 * EXCERPT].decode("utf-8", "backslashreplace")[:EXCERPT]


def _names(names: pa.Array | None, default: str | None, length: int) -> pa.Array:
    """Return a column of origins or licences, with `default` in place of what is missing."""
    if names is None:
        return pa.nulls(length, pa.string()) if default is None else constant(default, length)
    names = named(names)
    return names.fill_null(default) if names.null_count and default is not None else names


def named(names: pa.Array) -> pa.Array:
    """Return a column of names as valid UTF-8, with null in place of an empty one."""
    if not pa.types.is_string(names.type):
        names = names.cast(pa.string())
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        values = names.view(pa.binary()).to_pylist()
        readable = [v if v is None else v.decode("utf-8", "backslashreplace") for v in values]
        names = pa.array(readable, pa.string())
    empty = pc.equal(names, "")
    return pc.if_else(empty, None, names) if pc.any(empty).as_py() else names
