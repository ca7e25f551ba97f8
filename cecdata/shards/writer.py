"""Parquet files of the shards: zstd level 1, one encoding per column, the same bytes every time.

The functions here fill a file. `cecdata.common.durable` names it and proves it:
``durable.write(path, fill=lambda p: write_pairs(p, [table]), check=whole)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.errors import CecError, InputError
from cecdata.shards.schema import PAIR, SCHEMA_VERSION

ROW_GROUP = 65_536
VERSION_KEY = "cecdata.schema_version"

_EDIT = "edits.list.element."
# What repeats gets a dictionary; the dictionaries a caller hands over are written as they are,
# without hashing. Sources never repeat: hashing them costs a third more time and saves nothing.
_DICTIONARY = (
    "target",
    "operator",
    "origin",
    "reason",
    "file",
    *(_EDIT + name for name in ("target", "source", "operator", "kind")),
)
# Small integers: packed differences are the cheapest to write; ids repeat copy after copy, which
# zstd alone sees best (2.0 bytes a pair against 2.3 packed and 3.5 with a dictionary).
_PACKED = ("copy", "distance", "row", _EDIT + "start", _EDIT + "end")
_DICTIONARY_LIMIT = 1 << 28  # bytes; beyond it a dictionary would silently be given up

Codes = npt.NDArray[np.int8] | npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int32]


def write_pairs(path: Path, tables: Iterable[pa.Table], schema: pa.Schema = PAIR) -> int:
    """Fill `path` with the tables' rows, in row groups of 65,536; gives the number of rows.

    Text columns may come as dictionary arrays (`edits_array`, `repeated`): they cost less and
    are read back as plain text. Each table starts a row group of its own. No table gives a
    file with no rows. Raises InputError where a column is not what the schema says.
    """
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            _check_columns(table.schema, schema, path)
            writer = writer or _open(path, table.schema)
            for start in range(0, table.num_rows, ROW_GROUP):
                part = table.slice(start, ROW_GROUP)
                writer.write_table(_trim_dictionaries(part), row_group_size=ROW_GROUP)
            rows += table.num_rows
        writer = writer or _open(path, schema)
    finally:
        if writer is not None:
            writer.close()
    return rows


def edits_array(
    offsets: Offsets,
    start: Offsets,
    end: Offsets,
    target: pa.Array,
    source: pa.Array,
    operator_codes: Codes,
    kind_codes: Codes,
    operators: Sequence[str],
    kinds: Sequence[str],
) -> pa.ListArray:
    """The column `edits` over flat buffers, none of them copied.

    `offsets` has one entry more than there are pairs; edits of pair i are
    ``offsets[i]:offsets[i + 1]`` of the other arrays. `target` and `source` are string arrays
    or, cheaper, dictionary arrays (see `compact`); the codes index `operators` and `kinds`.

    >>> edits_array(
    ...     np.array([0, 1], np.int32), np.array([4], np.int32), np.array([5], np.int32),
    ...     pa.array(["已"]), pa.array(["己"]), np.zeros(1, np.int8), np.zeros(1, np.int8),
    ...     ["homophone"], ["same_sound"],
    ... ).to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [[{'start': 4, 'end': 5, 'target': '已', 'source': '己',
       'operator': 'homophone', 'kind': 'same_sound'}]]
    """
    columns = {
        "start": pa.array(start, pa.int32()),
        "end": pa.array(end, pa.int32()),
        "target": target,
        "source": source,
        "operator": named(operator_codes, operators),
        "kind": named(kind_codes, kinds),
    }
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    struct = pa.StructArray.from_arrays(list(columns.values()), fields=fields)
    element = pa.field("element", struct.type, nullable=False)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=pa.list_(element))


def named(codes: Codes, names: Sequence[str]) -> pa.DictionaryArray:
    """Text as codes into a short list of names; what `operator` and `kind` are made of."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string()))


def compact(codes: Codes, texts: pa.Array) -> pa.DictionaryArray:
    """Return codes into a long table of texts as an array with a dictionary of those in use.

    The dictionary keeps the order of the table and holds a text once, though the table may hold it
    twice: for a dictionary with duplicates Arrow writes a page whose end is uninitialised memory.

    >>> compact(np.array([7, 2, 7], np.int32), pa.array(list("零一二三四五六七"))).to_pylist()
    ['七', '二', '七']
    """
    used = np.zeros(len(texts), np.bool_)
    used[codes] = True
    distinct = texts.filter(pa.array(used)).cast(pa.string()).dictionary_encode()
    renumbered = np.zeros(len(texts), np.int32)
    renumbered[used] = np.asarray(distinct.indices)
    return pa.DictionaryArray.from_arrays(pa.array(renumbered[codes]), distinct.dictionary)


def repeated(rows: Offsets, texts: pa.Array) -> pa.DictionaryArray:
    """The column `target`: for each pair the row of its sentence in the pool's `text` column."""
    return pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), texts)


def pair_table(columns: dict[str, pa.Array], schema: pa.Schema = PAIR) -> pa.Table:
    """A table in the schema's order and nullability, dictionary arrays left as they are."""
    fields = [schema.field(name).with_type(columns[name].type) for name in schema.names]
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=pa.schema(fields))


def check_whole(path: Path, rows: int, schema: pa.Schema = PAIR) -> None:
    """Re-read the footer: CecError unless `path` has these rows and this schema."""
    try:
        with pq.ParquetFile(path) as file:
            found, written = file.metadata.num_rows, file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise CecError(f"{path}: the file just written has no readable footer ({error})") from error
    if found != rows or not written.equals(schema):
        raise CecError(f"{path}: {rows:,} rows were written, {found:,} were read back as {written}")


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    leaves = set(_leaves(schema))
    return pq.ParquetWriter(
        path,
        schema.with_metadata({VERSION_KEY: str(SCHEMA_VERSION)}),
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in _DICTIONARY if name in leaves],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in _PACKED if name in leaves},
        dictionary_pagesize_limit=_DICTIONARY_LIMIT,
        # A flipped bit in a page is noticed by whoever asks (our reader does); costs 3 %.
        write_page_checksum=True,
        write_statistics=False,
        # The Arrow schema would say "dictionary", which `datasets` does not read.
        store_schema=False,
    )


def _leaves(schema: pa.Schema) -> list[str]:
    """Names of the Parquet columns: a list of structs has one for each field."""
    names: list[str] = []
    for field in schema:
        if pa.types.is_list(field.type):
            names += (f"{field.name}.list.element.{f.name}" for f in field.type.value_type)
        else:
            names.append(field.name)
    return names


def _check_columns(given: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    plain = pa.schema([field.with_type(_plain(field.type)) for field in given])
    if not plain.equals(wanted):
        odd = [_told(field) for field in plain if field not in wanted]
        missing = [_told(field) for field in wanted if field not in plain]
        raise InputError(
            f"{path}: the table does not have the schema's columns in their order; it has "
            f"{'; '.join(odd) or 'none'} that the schema has not, and lacks "
            f"{'; '.join(missing) or 'none'}"
        )


def _told(field: pa.Field) -> str:
    return f"{field.name}: {field.type}" + ("" if field.nullable else " not null")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type a reader will see: dictionaries opened, at any depth."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind


def _trim_dictionaries(table: pa.Table) -> pa.Table:
    """Give the row group of a repeated column only the stretch of texts that it uses.

    Parquet stores a dictionary with every row group; without this each of the four groups of a
    shard would carry the shard's 65,536 sentences.
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
