"""The rows that every reader of a format yields: those with sound UTF-8, and rejected ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.sources import MAX_BYTES, UTF8, Reject, Rows, Source, make_excerpt
from cecdata.shards.schema import REJECTED_ROW, ROW

_SPELT = 1 << 12  # most bytes of a line that is not UTF-8 that the rejects keep whole

# `from_pylist` would import pandas
_NONE = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in REJECTED_ROW], schema=REJECTED_ROW)

Int64s = npt.NDArray[np.int64]
Fault = tuple[str, str, str]  # what the rejects show of a text, the reason, and the detail


def repeat_text(value: str, length: int) -> pa.StringArray:
    """Return an array that repeats one string; 20 times as fast as `pa.repeat`."""
    data = value.encode("utf-8")
    offsets = np.arange(length + 1, dtype=np.int32) * len(data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data * length)]
    return pa.StringArray.from_buffers(length, buffers[1], buffers[2])


def split_lines(data: bytes) -> pa.BinaryArray:
    """Return the lines of a block, each ended by a line feed, without their ends."""
    parts = pc.split_pattern(pa.array([data], pa.binary()), "\n").values
    return parts.slice(0, len(parts) - 1)


def build_rows(
    source: Source,
    text: pa.Array,
    origin: pa.Array | None,
    rows: Int64s,
    rejects: Sequence[Reject] = (),
    licence: pa.Array | None = None,
) -> Rows:
    """Build `Rows` from text that may hold nulls, overlong values or bytes that are not UTF-8.

    `text` is any binary or string array, or a dictionary of one; `rows` are line or row numbers
    from 1; `rejects` are those of the format itself; `origin` and `licence` are by default those of
    the source. A sound batch is not copied.
    """
    text = unwrap_text(text)
    origin = _fill_names(origin, source.origin, len(text))
    licence = _fill_names(licence, source.licence or None, len(text))
    if faults := find_faults(text, source):
        places = list(faults)
        origins = origin.take(pa.array(places)).to_pylist()
        named = zip(places, origins, strict=True)
        further = [Reject(int(rows[place]), name, *faults[place]) for place, name in named]
        rejects = [*rejects, *further]
        sound = np.ones(len(text), np.bool_)
        sound[places] = False
        is_sound, rows = pa.array(sound), rows[sound]
        text, origin, licence = (part.filter(is_sound) for part in (text, origin, licence))
    file = repeat_text(source.label, len(text))
    arrays = [_convert_to_string(text), origin, file, pa.array(rows, pa.int64()), licence]
    ranked = sorted(rejects, key=lambda reject: reject.row)
    listed = [{"file": source.label, **reject._asdict()} for reject in ranked]
    rejected = pa.RecordBatch.from_pylist(listed, REJECTED_ROW) if listed else _NONE
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=ROW), rejected)


def unwrap_text(text: pa.Array) -> pa.Array:
    """Return a dictionary or a view of texts as plain ones, and any other array unchanged."""
    if pa.types.is_dictionary(text.type):
        return unwrap_text(text.dictionary_decode())
    if pa.types.is_string_view(text.type):
        return text.view(pa.binary_view()).cast(pa.binary()).view(pa.string())
    return text


def find_faults(text: pa.Array, source: Source) -> dict[int, Fault]:
    """Return what is wrong with texts, by place: missing, too long, or not UTF-8."""
    faults: dict[int, Fault] = {}
    if text.null_count:
        missing = np.flatnonzero(text.is_null().to_numpy(zero_copy_only=False)).tolist()
        faults = dict.fromkeys(missing, ("", "no_text", "the text is missing or null"))
    wide = pa.types.is_large_string(text.type) or pa.types.is_large_binary(text.type)
    binary = text.view(pa.large_binary() if wide else pa.binary())
    sizes = np.asarray(pc.fill_null(pc.binary_length(binary), 0))
    for place in np.flatnonzero(sizes > MAX_BYTES).tolist():
        head = binary[place].as_buffer()[:1024].to_pybytes()
        detail = f"{sizes[place]} bytes, at most {MAX_BYTES}"
        faults[place] = (make_excerpt(head), "too_long", detail)
    try:
        _convert_to_string(text).validate(full=True)
    except pa.ArrowInvalid:
        for place, value in enumerate(binary):
            if place not in faults and (fault := find_fault(value.as_py(), source)) is not None:
                faults[place] = fault
    return faults


def find_fault(value: bytes, source: Source) -> Fault | None:
    """Return what is wrong with one value that may not be UTF-8."""
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
    detail, reason = f"byte 0x{value[at]:02X} at byte {at}", f"invalid_{source.encoding}"
    # Escaping a megabyte of undecodable bytes takes a quarter of a second.
    if len(value) > _SPELT:
        detail += f"; an excerpt of {len(value)} bytes"
        return make_excerpt(value), reason.replace("-", ""), detail
    return value.decode("utf-8", "backslashreplace"), reason.replace("-", ""), detail


def _convert_to_string(text: pa.Array) -> pa.Array:
    """Return a string array over the same bytes, unchecked; 64-bit offsets become 32-bit ones."""
    if pa.types.is_binary(text.type):
        return text.view(pa.string())
    if pa.types.is_large_binary(text.type):
        text = text.view(pa.large_string())
    return text if pa.types.is_string(text.type) else text.cast(pa.string())


def _fill_names(names: pa.Array | None, default: str | None, length: int) -> pa.Array:
    """Return a column of origins or licences, with `default` in place of what is missing."""
    if names is None:
        return pa.nulls(length, pa.string()) if default is None else repeat_text(default, length)
    names = clean_names(unwrap_text(names))
    return names.fill_null(default) if names.null_count and default is not None else names


def clean_names(names: pa.Array) -> pa.Array:
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
