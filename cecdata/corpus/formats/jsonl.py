"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.formats.base import Format
from cecdata.corpus.lines import Block, blocks, numbers
from cecdata.corpus.rows import (
    DEFAULT_ORIGIN,
    DEFAULT_TEXT,
    EXCERPT,
    Columns,
    Picked,
    Reject,
    Rows,
    default_text,
    fault,
    gather,
    unknown_column,
)
from cecdata.corpus.sources import Source, opened

_LOOK = 100  # lines that are searched for the columns


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the objects of a JSON-lines file; a line without one is rejected, the others stay."""
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
            text, origin = (table.column(i).combine_chunks() for i in (0, 1))
            yield gather(source, text, origin, rows, block.rejects)


def _pick(columns: Columns, block: Block, source: Source) -> Picked:
    """Choose the keys to read by the file's first objects.

    Raises InputError for a key that none of them has: a typo would reject every row.
    """
    keys: dict[str, None] = {}
    strings: dict[str, None] = {}
    for line in block.data.split(b"\n", _LOOK)[:_LOOK]:
        value = _load(line)
        if isinstance(value, dict):
            keys.update(dict.fromkeys(value))
            strings.update(dict.fromkeys(k for k in value if isinstance(value[k], str)))
    for name in (columns.text, columns.origin):
        if keys and name is not None and name not in keys:
            raise InputError(unknown_column(name, list(keys), source.label))
    text = columns.text
    if text is None:
        text = default_text(list(keys), list(strings), source.label) if keys else DEFAULT_TEXT
    return Picked(text, columns.origin or DEFAULT_ORIGIN)


def _load(line: bytes) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def _parse_fast(block: Block, picked: Picked) -> pa.Table | None:
    """Parse the whole block with Arrow; None if that may not give one row a line.

    Every line opens and closes with a brace and none is blank, so that no object can span lines;
    as many rows as lines then means one object in each.
    """
    import pyarrow.json as pj

    data = block.data
    count = data.count(b"\n")
    braces = data.startswith(b"{") and data.endswith(b"}\n")
    if not braces or data.count(b"}\n{") != count - 1 or picked.text == picked.origin:
        return None
    schema = pa.schema([(picked.text, pa.string()), (str(picked.origin), pa.string())])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = pj.read_json(pa.BufferReader(data), reading, options)
    except pa.ArrowInvalid:
        return None
    return table.select(schema.names) if table.num_rows == count else None


def _parse_lines(block: Block, picked: Picked, source: Source) -> Rows:
    texts: list[bytes] = []
    origins: list[str] = []
    rows: list[int] = []
    rejects = list(block.rejects)
    for row, line in enumerate(block.data.split(b"\n")[:-1], block.first_line):
        parsed = _parse_line(line, row, picked, source)
        if isinstance(parsed, Reject):
            rejects.append(parsed)
            continue
        texts.append(parsed[0])
        origins.append(parsed[1])
        rows.append(row)
    text, origin = pa.array(texts, pa.binary()), pa.array(origins, pa.string())
    return gather(source, text, origin, np.array(rows, dtype=np.int64), rejects)


def _parse_line(
    line: bytes, row: int, picked: Picked, source: Source
) -> tuple[bytes, str] | Reject:
    """Return the text (UTF-8) and origin of one line, or why there is none."""
    shown = line.decode("utf-8", "backslashreplace")
    default = source.origin
    if not line.strip():
        return b"", default
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        bad = fault(line, source)
        assert bad is not None
        return Reject(row, default, *bad)
    except (ValueError, RecursionError) as error:
        return Reject(row, default, shown[:EXCERPT], "invalid_json", str(error))
    if not isinstance(value, dict):
        return Reject(row, default, shown[:EXCERPT], "invalid_json", "not an object")
    origin = _origin(value, picked, default)
    text = value.get(picked.text)
    if not isinstance(text, str):
        detail = f"{picked.text!r} is {'missing' if text is None else type(text).__name__}"
        return Reject(row, origin, shown[:EXCERPT], "no_text", detail)
    try:
        return text.encode("utf-8"), origin
    except UnicodeEncodeError as error:
        detail = f"U+{ord(text[error.start]):04X} at {error.start}"
        readable = text.encode("utf-8", "backslashreplace").decode("utf-8")
        return Reject(row, origin, readable, "lone_surrogate", detail)


def _origin(value: dict[str, object], picked: Picked, default: str) -> str:
    named = value.get(str(picked.origin))
    text = default if named is None else str(named)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


FORMAT = Format(_read, (".jsonl", ".ndjson"))
