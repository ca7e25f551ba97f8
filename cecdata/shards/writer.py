"""Parquet files of the shards: zstd level 1, one encoding per column, the same bytes every time.

The functions here fill a file. `cecdata.common.durable` names it and proves it:
``durable.write(path, fill=lambda p: write_pairs(p, table), check=whole)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.errors import CecError
from cecdata.shards.schema import PAIR, SCHEMA_VERSION

ROW_GROUP = 65_536
VERSION_KEY = "cecdata.schema_version"

# These texts hardly ever repeat: hashing them costs a third more time and saves nothing.
_DISTINCT = ("source", "text", "detail")
_DICTIONARY_LIMIT = 1 << 28  # bytes; beyond it Parquet would silently give up a dictionary


def write_pairs(path: Path, table: pa.Table) -> None:
    """Fill `path` with the rows of a table, in row groups of 65,536.

    Text columns may be dictionary arrays (as of `edits_array`): they cost less to write and
    are read back as plain text.
    """
    with _open(path, table.schema) as writer:
        for start in range(0, table.num_rows, ROW_GROUP):
            part = table.slice(start, ROW_GROUP)
            writer.write_table(_trim_dictionaries(part), row_group_size=ROW_GROUP)


def check_whole(path: Path, rows: int, schema: pa.Schema = PAIR) -> None:
    """Re-read the footer; raise CecError unless `path` has these rows and this schema."""
    try:
        with pq.ParquetFile(path) as file:
            count, written = file.metadata.num_rows, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise CecError(f"{path}: the file just written has no readable footer ({error})") from error
    if count != rows or not written.equals(schema):
        raise CecError(f"{path}: {rows:,} rows were written, {count:,} were read back as {written}")


def _encodings(schema: pa.Schema) -> tuple[list[str], dict[str, str]]:
    """Return the columns with a dictionary, and the encoding of others.

    Texts that repeat get a dictionary; dictionary arrays of the caller are written without hashing.
    For small integers packed differences are the cheapest to write. Ids repeat from copy to copy,
    which zstd alone compresses best (2.0 bytes a pair, 2.3 packed, 3.5 with a dictionary).
    """
    leaves = dict(_leaves(schema))
    texts = [name for name, kind in leaves.items() if pa.types.is_string(kind)]
    numbers = [name for name, kind in leaves.items() if pa.types.is_integer(kind) and name != "id"]
    repeated = [name for name in texts if name not in _DISTINCT]
    return repeated, dict.fromkeys(numbers, "DELTA_BINARY_PACKED")


def _leaves(fields: Iterable[pa.Field], before: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns of a Parquet file by their paths, with the types that a reader sees."""
    for field in fields:
        kind = _plain(field.type)
        if pa.types.is_list(kind):
            yield from _leaves(kind.value_type, f"{before}{field.name}.list.element.")
        else:
            yield f"{before}{field.name}", kind


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    dictionary, encodings = _encodings(schema)
    return pq.ParquetWriter(
        path,
        schema.with_metadata({VERSION_KEY: str(SCHEMA_VERSION)}),
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionary,
        column_encoding=encodings,
        dictionary_pagesize_limit=_DICTIONARY_LIMIT,
        # A reader that checks it, as ours does, notices a flipped bit in a page; it costs 3 %.
        write_page_checksum=True,
        write_statistics=False,
        # The Arrow schema would have dictionary types, which `datasets` cannot read.
        store_schema=False,
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that a reader sees: that of the values for dictionaries, at any depth."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind


def _trim_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table with each dictionary cut to the range of texts that the table uses.

    Parquet stores a dictionary with every row group; uncut, each of the four groups of a shard
    would hold the shard's 65,536 sentences.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            column = table.column(place).combine_chunks()
            table = table.set_column(place, field, _trimmed(column))
    return table


def _trimmed(column: pa.DictionaryArray | pa.ChunkedArray) -> pa.DictionaryArray:
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    codes = array.indices.to_numpy()
    low, high = int(codes.min()), int(codes.max())
    return pa.DictionaryArray.from_arrays(
        pa.array(codes - codes.dtype.type(low)), array.dictionary.slice(low, high - low + 1)
    )
