"""Columnar tables: Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from cecdata.common.errors import InputError
from cecdata.corpus.sources import Format, Picked, Record, Reject, Rows, Source, pick_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


_BATCH = 1 << 24  # bytes of a batch, if its rows were of mean size
_VALUES = 1_024  # rows
_LARGE, _BUFFER = 1 << 26, 1 << 20  # bytes: a larger Parquet file is read through such a buffer


def _read_rows(source: Source, text_column: str | None, batch_rows: int) -> Iterator[Rows]:
    """Yield the rows of a Parquet file, a batch at a time; only the picked columns are decoded."""
    import numpy as np

    from cecdata.corpus.rows import build_rows

    with _open_file(source) as file:
        picked = _pick_columns(text_column, file.schema_arrow, source)
        first = source.before + 1
        for batch in _read_batches(file, source, picked.names, batch_rows):
            text, origin, licence = (
                None if name is None else batch.column(name) for name in picked
            )
            rows = np.arange(first, first + batch.num_rows)
            yield build_rows(source, text, origin, rows, (), licence)
            first += batch.num_rows


def _read_records(source: Source) -> Iterator[Record | Reject]:
    """Yield the rows as mappings of their columns, a few of which are decoded at a time."""
    import pyarrow as pa

    number = count(1)
    with _open_file(source) as file:
        names = file.schema_arrow.names
        first = [names.index(name) for name in names]  # which of one name keeps it
        names = [name if at == first[at] else f"{name} {at}" for at, name in enumerate(names)]
        for batch in _read_batches(file, source, None, _VALUES):
            columns = []
            for column in batch.columns:
                readable, reasons = _blank_bad_texts(column, source)
                yield from (Reject(0, source.origin, "", reason, "") for reason in reasons)
                columns.append(readable)
            values = pa.RecordBatch.from_arrays(columns, names).to_pylist()
            yield from (Record(next(number), value) for value in values)


def _blank_bad_texts(column: pa.Array, source: Source) -> tuple[pa.Array, list[str]]:
    """Return a column with "" for each text that is missing or bad, and the reasons of the bad."""
    import pyarrow as pa

    from cecdata.corpus.rows import find_faults, unwrap_text

    column = unwrap_text(column)
    if not is_text(column.type):
        return column, []
    faults = find_faults(column.fill_null(""), source)
    values = column.cast(pa.large_binary()).to_pylist() if faults else ()
    texts = ["" if at in faults or not text else text.decode() for at, text in enumerate(values)]
    reasons = [reason for _, reason, _ in faults.values()]
    return (pa.array(texts) if faults else column.fill_null("")), reasons


@contextmanager
def _open_file(source: Source) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, not mapped, a large one through a buffer.

    Raises InputError for a damaged file. Mapped pages would count as memory of this process. A
    smaller file is read by whole column chunks: a buffered reader allocates all the bytes that a
    page's header claims, up to 2 GiB, before it checks that the file has them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert source.path is not None
    try:
        buffer = _BUFFER if source.path.stat().st_size > _LARGE else 0
        options = {"memory_map": False, "pre_buffer": False, "buffer_size": buffer}
        options["page_checksum_verification"] = True
        with pq.ParquetFile(source.path, **options) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source.label}: the file is damaged, incomplete, or not a {source.format} file "
            f"({str(error).splitlines()[0]}). Download or write it again."
        ) from error


def split_groups(source: Source, most: int) -> list[Source]:
    """Cut a file at its row groups into parts of about `most` bytes; rows keep their numbers."""
    with _open_file(source) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert source.path is not None
    unpacked_size = sum(group.total_byte_size for group in groups)
    share = source.path.stat().st_size / max(1, unpacked_size)  # bytes in the file for one of them
    parts: list[Source] = []
    first = before = rows = 0  # the part's first group, the rows before it, the rows so far
    size_of_part = 0.0
    for number, group in enumerate(groups):
        size = group.total_byte_size * share
        if size_of_part and size_of_part + size > most:
            parts.append(replace(source, groups=(first, number), before=before))
            first, before, size_of_part = number, rows, 0.0
        size_of_part, rows = size_of_part + size, rows + group.num_rows
    return [*parts, replace(source, groups=(first, len(groups)), before=before)]


def _read_batches(
    file: pq.ParquetFile, source: Source, names: list[str] | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the checked batches of the columns `names`, or of all; Arrow itself trusts the file."""
    import pyarrow as pa

    chosen = range(*(source.groups or (0, file.num_row_groups)))
    groups = [file.metadata.row_group(group) for group in chosen]
    mean = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0)
    rows = max(1, min(rows, int(_BATCH / max(1, mean))))
    for batch in file.iter_batches(rows, chosen, names, use_threads=False):
        for column in batch.columns:
            if pa.types.is_string(column.type):
                column.view(pa.binary()).validate(full=True)
            elif not is_text(column.type):
                column.validate(full=True)
        yield batch


def _pick_columns(text_column: str | None, schema: pa.Schema, source: Source) -> Picked:
    """Return the columns to read; raise InputError for one that does not hold strings."""
    strings = [field.name for field in schema if is_text(field.type)]
    picked = pick_columns(text_column, schema.names, strings, source.label)
    for what, name in (("origin", picked.origin), ("licence", picked.licence)):
        if name is not None and name not in strings:
            raise InputError(f"{source.label}: column {name!r} ({what}) must hold strings")
    return picked


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds strings, in a dictionary or not."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


FORMAT = Format(_read_rows, _read_records, (".parquet",), stream=False)
