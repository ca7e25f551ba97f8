"""Tables that are Arrow already: Parquet, and Arrow IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.lines import numbers
from cecdata.corpus.rows import Columns, Picked, Rows, gather
from cecdata.corpus.sources import Source
from cecdata.errors import InputError

_MAGIC = b"ARROW1"


def read_parquet(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """The rows of a Parquet file, a batch at a time; only the two columns are decoded."""
    import pyarrow.parquet as pq

    assert source.path is not None
    # Neither mapped (its pages count as ours) nor buffered whole: a megabyte at a time.
    options = {"memory_map": False, "pre_buffer": False, "buffer_size": 1 << 20}
    with _naming(source), pq.ParquetFile(source.path, **options) as file:
        picked = _pick(columns, file.schema_arrow, source)
        batches = file.iter_batches(batch_rows, columns=_names(picked), use_threads=False)
        yield from _rows(source, picked, batches)


def read_arrow(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """The rows of an Arrow IPC file (`.arrow`, `.feather`) or stream (`save_to_disk`)."""
    assert source.path is not None
    with _naming(source), pa.memory_map(str(source.path)) as mapped:
        is_file = mapped.read(len(_MAGIC)) == _MAGIC
        mapped.seek(0)
        reader = pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)
        picked = _pick(columns, reader.schema, source)
        whole = (
            (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
        )
        batches = (
            batch.slice(start, batch_rows)
            for batch in whole
            for start in range(0, batch.num_rows, batch_rows)
        )
        yield from _rows(source, picked, batches)


def _rows(source: Source, picked: Picked, batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
    first = 1
    for batch in batches:
        text = _sound(batch.column(picked.text))
        origin = None if picked.origin is None else _sound(batch.column(picked.origin))
        yield gather(source, text, origin, numbers(first, batch.num_rows))
        first += batch.num_rows


def _sound(array: pa.Array) -> pa.Array:
    """Strings as one run of bytes, after a look at every offset: Arrow itself trusts the file.

    Whether the bytes are UTF-8 is asked later, row by row.
    """
    array.validate()
    if pa.types.is_dictionary(array.type):
        codes, texts = array.indices, _sound(array.dictionary)
        bounds = pc.min_max(codes).as_py()
        if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(texts):
            raise pa.ArrowInvalid("a dictionary's index lies outside of it")
        return texts.take(codes)
    if pa.types.is_string_view(array.type):
        array.view(pa.binary_view()).validate(full=True)
        return array.view(pa.binary_view()).cast(pa.binary()).view(pa.string())
    wide = pa.types.is_large_string(array.type)
    array.view(pa.large_binary() if wide else pa.binary()).validate(full=True)
    return array


def _pick(columns: Columns, schema: pa.Schema, source: Source) -> Picked:
    strings = [field.name for field in schema if _is_text(field.type)]
    picked = columns.pick(schema.names, strings, source.label)
    if picked.origin is not None and picked.origin not in strings:
        raise InputError(f"{source.label}: column {picked.origin!r} (origin) is no string column")
    return picked


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _names(picked: Picked) -> list[str]:
    return [picked.text] if picked.origin is None else [picked.text, picked.origin]


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{source.label}: the file is damaged, cut off, or no {source.format[1:]} file "
            f"({str(error).splitlines()[0]}). Fetch or write it again."
        ) from error
