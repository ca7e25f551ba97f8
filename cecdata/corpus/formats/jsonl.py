"""JSON lines, one object on a line, and JSON documents, whose objects are handled as lines."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cecdata.common.errors import InputError
from cecdata.corpus import sources
from cecdata.corpus.lines import Block, read_utf8, split_blocks
from cecdata.corpus.sources import Format, Record, Reject, Rows, Source, make_excerpt

if TYPE_CHECKING:
    import pyarrow as pa


_LOOK = 100  # lines that are searched for keys
_MAX_BYTES = 1 << 27  # of a document, which is held as a whole
_AT_ONCE = 8192  # elements in a block
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class _Keys(NamedTuple):
    """The keys to read; of several licences an object's first counts."""

    text: str
    origin: str
    licences: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        return self.text, self.origin, *self.licences


Cut = Callable[[Source], Iterator[Block]]  # a file in blocks of lines, an object on each


def _read_rows(
    cut: Cut, source: Source, text_column: str | None, batch_rows: int
) -> Iterator[Rows]:
    """Yield the objects of a file by blocks, read by Arrow where it can, else line by line.

    Only lines without an object are rejected.
    """
    import pyarrow.compute as pc

    from cecdata.corpus.rows import build_rows, clean_names

    del batch_rows  # a block of bytes is a batch
    keys = None
    for block in cut(source):
        keys = keys or _choose_keys(text_column, block, source)
        table = _parse_fast(block, keys)
        if table is None:
            yield _parse_lines(block, keys, source)
            continue
        rows = block.first_line + np.arange(table.num_rows)
        text, origin, *licences = (table.column(name).combine_chunks() for name in keys.names())
        licence = pc.coalesce(*map(clean_names, licences)) if licences else None
        yield build_rows(source, text, origin, rows, block.rejects, licence)


def _read_records(cut: Cut, source: Source) -> Iterator[Record | Reject]:
    """Yield the value of each line; raise InputError for one that is not JSON."""
    for block in cut(source):
        yield from block.rejects
        for number, line in enumerate(block.data.split(b"\n")[:-1], block.first_line):
            if line.strip():
                try:
                    yield Record(number, json.loads(line.decode("utf-8", "surrogateescape")))
                except (ValueError, RecursionError) as error:
                    where = f"{source.label}, line {number}"
                    raise InputError(f"{where} is not JSON: {error}") from error


def _split_lines(source: Source) -> Iterator[Block]:
    with sources.open_source(source) as stream:
        yield from split_blocks(stream, source)


def _split_elements(source: Source) -> Iterator[Block]:
    """Yield the elements of a document, objects or strings, as lines.

    They are those of a list, also of the only one among an object's values, as `{"data": [...]}`
    has it; another object is one element. JSON lines are read, too. Raises InputError for others.
    """
    data = _read_document(source)
    first, _, rest = data.lstrip().partition(b"\n")
    if first.startswith(b"{") and rest.strip() and isinstance(sources.parse_json(first), dict):
        yield from split_blocks(io.BytesIO(data), replace(source, encoding=sources.UTF8))
        return
    try:
        value = json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source.label}: not valid JSON ({error}). If each line is an object, add --format "
            "jsonl"
        ) from error
    elements = _find_elements(value)
    for start in range(0, len(elements), _AT_ONCE):
        lines = map(_dump_line, elements[start : start + _AT_ONCE])
        yield Block(b"".join(line + b"\n" for line in lines), start + 1)


def _find_elements(value: object) -> list[object]:
    """Return the elements of a document: its list, the only list among its values, or itself."""
    if isinstance(value, list):
        return value
    lists = [v for v in value.values() if isinstance(v, list)] if isinstance(value, dict) else []
    return lists[0] if len(lists) == 1 else [value]


def _dump_line(value: object) -> bytes:
    """Return a value as a line, with the bytes that were no UTF-8 as they were."""
    try:
        return _ENCODER.encode(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair was escaped, and stays so
        return json.dumps(value).encode()


def _read_document(source: Source) -> bytes:
    """Return a document in UTF-8 with line feeds; raise InputError if it is too large."""
    with sources.open_source(source) as stream:
        parts: list[bytes] = []
        size = 0
        for chunk in read_utf8(stream, source):
            parts.append(chunk)
            size += len(chunk)
            if size > _MAX_BYTES:
                raise InputError(
                    f"{source.label}: the document has more than {_MAX_BYTES >> 20} MiB: write it "
                    "as JSON lines (--format jsonl), or split it"
                )
    return b"".join(parts)


def _choose_keys(text_column: str | None, block: Block, source: Source) -> _Keys:
    """Choose the keys to read from the file's first objects: a typo would reject every row."""
    values = map(sources.parse_json, block.data.split(b"\n", _LOOK)[:_LOOK])
    items = [item for value in values if isinstance(value, dict) for item in value.items()]
    keys = list(dict.fromkeys(key for key, _ in items))
    with_text = list(dict.fromkeys(key for key, value in items if isinstance(value, str)))
    with_others = {key for key, value in items if not isinstance(value, (str, type(None)))}
    text = text_column
    if keys and text is not None and text not in keys:
        raise InputError(sources.explain_unknown_column(text, keys, source.label))
    if text is None:
        text = sources.DEFAULT_TEXT
        if keys:
            text = sources.pick_text(keys, with_text, source.label)
    licences = tuple(name for name in sources.DEFAULT_LICENCES if name not in with_others)
    return _Keys(text, sources.DEFAULT_ORIGIN, licences)


def _parse_fast(block: Block, keys: _Keys) -> pa.Table | None:
    """Parse the whole block with Arrow; return None unless each line certainly gives one row.

    It is certain if every line opens and closes with a brace and none is blank, so that no object
    spans lines, and if there are as many rows as lines.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    data, count = block.data, block.data.count(b"\n")
    begins_and_ends = data.startswith(b"{") and data.endswith(b"}\n")
    has_braces = begins_and_ends and data.count(b"}\n{") == count - 1
    if not has_braces or keys.text == keys.origin:
        return None
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        schema = pa.schema([(name, pa.string()) for name in dict.fromkeys(keys.names())])
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        table = pj.read_json(pa.BufferReader(data), reading, options)
    except (pa.ArrowInvalid, UnicodeEncodeError):  # a key may be half of a surrogate pair
        return None
    return table.select(schema.names) if table.num_rows == count else None


def _parse_lines(block: Block, keys: _Keys, source: Source) -> Rows:
    """Return the rows of a block, parsed line by line; bad lines become rejected rows."""
    import pyarrow as pa

    from cecdata.corpus.rows import build_rows

    parsed: dict[int, _Parsed] = {}  # by row
    rejects = list(block.rejects)
    for row, line in enumerate(block.data.split(b"\n")[:-1], block.first_line):
        result = _parse_line(row, line, keys, source)
        if isinstance(result, Reject):
            rejects.append(result)
        else:
            parsed[row] = result
    lines, rows = parsed.values(), np.array(list(parsed), np.int64)
    text, origin, licence = (
        pa.array([line[at] for line in lines], pa.string()) for at in range(len(_Parsed._fields))
    )
    return build_rows(source, text, origin, rows, rejects, licence)


class _Parsed(NamedTuple):
    """What a line holds."""

    text: str
    origin: str | None = None
    licence: str | None = None


def _parse_line(row: int, line: bytes, keys: _Keys, source: Source) -> _Parsed | Reject:
    """Return what a line holds under the keys, or why it is rejected."""
    from cecdata.corpus.rows import find_fault

    if not line.strip():
        return _Parsed("")
    if (fault := find_fault(line, source)) is not None:
        return Reject(row, source.origin, *fault)
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return Reject(row, source.origin, make_excerpt(line), "invalid_json", str(error))
    if isinstance(value, str) and source.format == "json":
        value = {keys.text: value}
    if not isinstance(value, dict):
        return Reject(row, source.origin, make_excerpt(line), "invalid_json", "not an object")
    origin, *licences = (_find_text_under(value, name) for name in (keys.origin, *keys.licences))
    text = value.get(keys.text)
    if not isinstance(text, str):
        detail = f"{keys.text!r} is {'missing' if text is None else type(text).__name__}"
        return Reject(row, origin or source.origin, make_excerpt(line), "no_text", detail)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        detail = f"U+{ord(text[error.start]):04X} at {error.start}"
        readable = text.encode("utf-8", "backslashreplace").decode("utf-8")
        return Reject(row, origin or source.origin, readable, "lone_surrogate", detail)
    return _Parsed(text, origin, next(filter(None, licences), None))


def _find_text_under(value: dict[str, object], key: str) -> str | None:
    """Return the value under a key as text, or None where it is missing, null or empty."""
    found = value.get(key)
    if found is None:
        return None
    return str(found).encode("utf-8", "backslashreplace").decode() or None  # lone surrogates


LINES = Format(
    partial(_read_rows, _split_lines), partial(_read_records, _split_lines), (".jsonl", ".ndjson")
)
DOCUMENT = Format(
    partial(_read_rows, _split_elements), partial(_read_records, _split_elements), (".json",)
)
