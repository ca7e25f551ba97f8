"""Columnar tables: Parquet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.errors import InputError
from cecdata.corpus.lines import numbers
from cecdata.corpus.rows import MAX_BYTES, Format, Record, Reject, Rows, gather, plain, readable
from cecdata.corpus.sources import Columns, Picked, Source

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Most bytes of text that are decoded from a dictionary at a time: half a kilobyte may encode a
# million characters, a million times.
_AT_ONCE = 1 << 28
_BATCH = 1 << 24  # bytes of a batch, if its rows were of mean size
_VALUES = 1_024  # rows
_LARGE, _BUFFER = 1 << 26, 1 << 20  # bytes: a larger Parquet file is read through such a buffer


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the rows of a Parquet file, a batch at a time; only the picked columns are decoded."""
    with _opened(source) as file:
        picked = _pick(columns, file.schema_arrow, source)
        yield from _rows(source, picked, _batches(file, source, picked.names, batch_rows))


@contextmanager
def _opened(source: Source, coded: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, not mapped, a large one through a buffer.

    The columns `coded` stay dictionaries. Raises InputError for a damaged file.

    Mapped pages would count as memory of this process. A smaller file is read by whole column
    chunks: a buffered reader allocates all the bytes that a page's header claims, up to 2 GiB,
    before it checks that the file has them.
    """
    import pyarrow.parquet as pq

    assert source.path is not None
    try:
        buffer = _BUFFER if source.path.stat().st_size > _LARGE else 0
        options = {"memory_map": False, "pre_buffer": False, "buffer_size": buffer}
        options["page_checksum_verification"] = True
        with pq.ParquetFile(source.path, read_dictionary=list(coded), **options) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source.label}: the file is damaged, incomplete, or not a {source.format} file "
            f"({str(error).splitlines()[0]}). Download or write it again."
        ) from error


def parts_of(source: Source, most: int) -> list[Source]:
    """Cut a file at its row groups into parts of about `most` bytes; rows keep their numbers."""
    with _opened(source) as file:
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
    assert source.path is not None
    packed = source.path.stat().st_size / max(1, sum(group.total_byte_size for group in groups))
    parts: list[Source] = []
    first = before = rows = 0
    held = 0.0
    for number, group in enumerate(groups):
        size = group.total_byte_size * packed
        if held and held + size > most:
            parts.append(replace(source, groups=(first, number), before=before))
            first, before, held = number, rows, 0.0
        held, rows = held + size, rows + group.num_rows
    return [*parts, replace(source, groups=(first, len(groups)), before=before)]


def _batches(
    file: pq.ParquetFile, source: Source, names: list[str] | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the columns `names`, or all; only long texts stay dictionary-encoded.

    Keeping all row groups encoded would cost more time than it saves.
    """
    chosen = range(*(source.groups or (0, file.num_row_groups)))
    facts = [file.metadata.row_group(group) for group in chosen]
    mean = max((each.total_byte_size / max(1, each.num_rows) for each in facts), default=0)
    rows = max(1, min(rows, int(_BATCH / max(1, mean))))
    large = [group for group in chosen if _weight(file, group, rows) > _AT_ONCE]
    if not large:
        yield from file.iter_batches(rows, chosen, names, use_threads=False)
        return
    texts = [field.name for field in file.schema_arrow if is_text(field.type)]
    with _opened(source, names or texts) as coded:
        swelling = {group for group in large if _swells(coded, group, names, rows)}
        for swells, run in itertools.groupby(chosen, swelling.__contains__):
            opened = coded if swells else file
            yield from opened.iter_batches(rows, list(run), names, use_threads=False)


def _weight(file: pq.ParquetFile, group: int, rows: int) -> int:
    """Return an upper bound of a batch's bytes: as if every row were as long as the row group."""
    facts = file.metadata.row_group(group)
    return min(rows, int(facts.num_rows)) * int(facts.total_byte_size)


def _swells(coded: pq.ParquetFile, group: int, names: list[str] | None, rows: int) -> bool:
    """Return whether a batch may be too large: if every row were as long as the longest text."""
    first = next(coded.iter_batches(1, [group], names, use_threads=False), None)
    columns = [] if first is None else filter(_is_coded, first.columns)
    lengths = [pc.binary_length(column.dictionary) for column in columns]
    return any(rows * (pc.max(length).as_py() or 0) > _AT_ONCE for length in lengths)


def _is_coded(text: pa.Array) -> bool:
    return pa.types.is_dictionary(text.type) and is_text(text.type)


def _records(source: Source) -> Iterator[Record | Reject]:
    """Yield the rows as mappings of their columns, a few of which are decoded at a time."""
    number = itertools.count(1)
    with _opened(source) as file:
        names = file.schema_arrow.names  # of columns with one name the first keeps it
        names = [n if names.index(n) == at else f"{n} {at}" for at, n in enumerate(names)]
        for batch in _batches(file, source, None, _VALUES):
            if any(map(pa.types.is_nested, batch.schema.types)):
                batch.validate(full=True)
            for part in _parts(batch):
                columns: list[pa.Array] = []
                for column in part.columns:
                    text, bad = readable(column, source) if is_text(column.type) else (column, [])
                    columns.append(text)
                    yield from (Reject(0, source.origin, "", reason, "") for reason in bad)
                rows = pa.RecordBatch.from_arrays(columns, names).to_pylist()
                yield from (Record(next(number), row) for row in rows)


def _rows(source: Source, picked: Picked, batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
    first = source.before + 1
    for batch in batches:
        for part in _parts(batch.select(picked.names)):
            origin, licence = (
                None if name is None else plain(part.column(name))
                for name in (picked.origin, picked.licence)
            )
            rows, text = numbers(first, part.num_rows), part.column(picked.text)
            yield gather(source, text, origin, rows, (), licence)
            first += part.num_rows


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Check every offset of a batch, and yield it in parts of at most `_AT_ONCE` bytes of text."""
    columns = [_sound(c) if is_text(c.type) else c for c in batch.columns]
    longest = 1
    for column in columns:
        if _is_coded(column) and len(column.dictionary):
            lengths = np.asarray(pc.binary_length(column.dictionary))
            # An overlong text is rejected, and only an excerpt of it is kept.
            longest = max(longest, int(lengths[lengths <= MAX_BYTES].max(initial=1)))
    whole, rows = pa.RecordBatch.from_arrays(columns, batch.schema.names), _AT_ONCE // longest
    for start in range(0, batch.num_rows, rows):
        yield whole.slice(start, rows)


def _sound(array: pa.Array) -> pa.Array:
    """Check every offset of a string array; return strings in one buffer, or a dictionary of them.

    Arrow itself trusts the file. Whether the bytes are UTF-8 is checked later, row by row.
    """
    array.validate()
    if pa.types.is_dictionary(array.type):
        codes, texts = array.indices, _sound(array.dictionary)
        bounds = pc.min_max(codes).as_py()
        if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(texts):
            raise pa.ArrowInvalid("an index lies outside the dictionary")
        if texts.null_count:
            return texts.take(codes)
        return pa.DictionaryArray.from_arrays(codes, texts)
    if pa.types.is_string_view(array.type):
        array.view(pa.binary_view()).validate(full=True)
        return array.view(pa.binary_view()).cast(pa.binary()).view(pa.string())
    wide = pa.types.is_large_string(array.type)
    array.view(pa.large_binary() if wide else pa.binary()).validate(full=True)
    return array


def _pick(columns: Columns, schema: pa.Schema, source: Source) -> Picked:
    strings = [field.name for field in schema if is_text(field.type)]
    picked = columns.pick(schema.names, strings, source.label)
    for what, name in (("origin", picked.origin), ("licence", picked.licence)):
        if name is not None and name not in strings:
            raise InputError(f"{source.label}: column {name!r} ({what}) must hold strings")
    return picked


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds strings, in a dictionary or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


FORMAT = Format(_read, _records, (".parquet",), stream=False)
