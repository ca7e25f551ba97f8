"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.columns import (
    DEFAULT_ORIGIN,
    DEFAULT_TEXT,
    Columns,
    Picked,
    default_licence,
    default_text,
    unknown_column,
)
from cecdata.corpus.formats.base import Format
from cecdata.corpus.lines import Block, blocks, numbers
from cecdata.corpus.rows import EXCERPT, Reject, Rows, fault, gather
from cecdata.corpus.sources import Source, opened

_LOOK = 100  # lines that are searched for keys


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the objects of a JSON-lines file; only lines without an object are rejected."""
    del batch_rows  # a block of bytes is a batch
    picked = None
    with opened(source) as stream:
        for block in blocks(stream, source):
            picked = picked or _pick(columns, block, source)
            table = _parse_fast(block, picked)
            if table is None:
                yield _parse_lines(block, picked, source)
                continue
            rows = numbers(block.first_line, table.num_rows)
            text, origin, licence = (
                table.column(name).combine_chunks() if name else None
                for name in (picked.text, picked.origin, picked.licence)
            )
            yield gather(source, text, origin, rows, block.rejects, licence)


def _pick(columns: Columns, block: Block, source: Source) -> Picked:
    """Choose the keys to read from the file's first objects: a typo would reject every row."""
    lines = block.data.split(b"\n", _LOOK)[:_LOOK]
    return pick_keys(columns, [_load(line) for line in lines], source)


def pick_keys(columns: Columns, values: Sequence[object], source: Source) -> Picked:
    """Choose the keys to read from the first objects; raise InputError for one that none has."""
    keys: dict[str, None] = {}
    strings: dict[str, None] = {}
    for value in values[:_LOOK]:
        if isinstance(value, dict):
            keys.update(dict.fromkeys(value))
            strings.update(dict.fromkeys(k for k in value if isinstance(value[k], str)))
    for _, name in columns.named:
        if keys and name is not None and name not in keys:
            raise InputError(unknown_column(name, list(keys), source.label))
    text = columns.text
    if text is None:
        text = default_text(list(keys), list(strings), source.label) if keys else DEFAULT_TEXT
    licence = columns.licence or default_licence(list(strings))
    return Picked(text, columns.origin or DEFAULT_ORIGIN, licence)


def _load(line: bytes) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _parse_fast(block: Block, picked: Picked) -> pa.Table | None:
    """Parse the whole block with Arrow; return None unless each line certainly gives one row.

    It is certain if every line opens and closes with a brace and none is blank, so that no object
    spans lines, and if there are as many rows as lines.
    """
    import pyarrow.json as pj

    data = block.data
    count = data.count(b"\n")
    braces = data.startswith(b"{") and data.endswith(b"}\n")
    if not braces or data.count(b"}\n{") != count - 1 or picked.text == picked.origin:
        return None
    schema = pa.schema([(name, pa.string()) for name in picked.names])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = pj.read_json(pa.BufferReader(data), reading, options)
    except pa.ArrowInvalid:
        return None
    return table.select(schema.names) if table.num_rows == count else None


def _parse_lines(block: Block, picked: Picked, source: Source) -> Rows:
    parsed: list[_Parsed] = []
    rows: list[int] = []
    rejects = list(block.rejects)
    for row, line in enumerate(block.data.split(b"\n")[:-1], block.first_line):
        one = _parse_line(line, row, picked, source)
        if isinstance(one, Reject):
            rejects.append(one)
            continue
        parsed.append(one)
        rows.append(row)
    texts, origins, licences = zip(*parsed, strict=True) if parsed else ((), (), ())
    text, origin, licence = (
        pa.array(texts, pa.binary()),
        pa.array(origins, pa.string()),
        pa.array(licences, pa.string()),
    )
    return gather(source, text, origin, np.array(rows, dtype=np.int64), rejects, licence)


_Parsed = tuple[bytes, str | None, str | None]  # text in UTF-8, origin, licence


def _parse_line(line: bytes, row: int, picked: Picked, source: Source) -> _Parsed | Reject:
    """Return the text, origin and licence of one line, or why there is none."""
    shown = line.decode("utf-8", "backslashreplace")
    if not line.strip():
        return b"", None, None
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        bad = fault(line, source)
        assert bad is not None
        return Reject(row, source.origin, *bad)
    except (ValueError, RecursionError) as error:
        return Reject(row, source.origin, shown[:EXCERPT], "invalid_json", str(error))
    return parse_value(value, row, picked, source, shown[:EXCERPT])


def parse_value(
    value: object, row: int, picked: Picked, source: Source, shown: str
) -> _Parsed | Reject:
    """Return the text, origin and licence of one object, or why there is none."""
    if not isinstance(value, dict):
        return Reject(row, source.origin, shown, "invalid_json", "not an object")
    origin, licence = (_name(value, name) for name in (picked.origin, picked.licence))
    text = value.get(picked.text)
    if not isinstance(text, str):
        detail = f"{picked.text!r} is {'missing' if text is None else type(text).__name__}"
        return Reject(row, origin or source.origin, shown, "no_text", detail)
    try:
        return text.encode("utf-8"), origin, licence
    except UnicodeEncodeError as error:
        detail = f"U+{ord(text[error.start]):04X} at {error.start}"
        readable = text.encode("utf-8", "backslashreplace").decode("utf-8")
        return Reject(row, origin or source.origin, readable, "lone_surrogate", detail)


def _name(value: dict[str, object], field: str | None) -> str | None:
    named = None if field is None else value.get(field)
    return None if named is None else str(named).encode("utf-8", "backslashreplace").decode("utf-8")


FORMAT = Format(_read, (".jsonl", ".ndjson"))
