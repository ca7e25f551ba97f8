"""The frozen Arrow schemas of the shards, version 2, and the Parquet files of their rows.

A change to a schema is a new version, which reads those from `FIRST_VERSION` on. Writer, reader,
card, frames and checks follow these schemas. Files have zstd level 1, one encoding per column, and
the same bytes every time; `cecdata.common.durable` names and proves them:
``durable.write(path, fill=lambda p: write_pairs(p, table), check=check_whole)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.errors import CecError

SCHEMA_VERSION = 2
FIRST_VERSION = 2  # that is read; no dataset of version 1 was published

# One edit: target[start:end] == `target` was written as `source` (code points, half-open).
EDIT = pa.struct(
    [
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
    ]
)

# One training pair.
PAIR = pa.schema(
    [
        # the bits of the xxh3-64 of the target's UTF-8; signed, because PyTorch, Java and SQL lack
        # an unsigned type of 64 bits
        pa.field("id", pa.int64(), nullable=False),
        pa.field("copy", pa.int16(), nullable=False),
        pa.field("source", pa.string(), nullable=False),  # perturbed
        pa.field("target", pa.string(), nullable=False),  # clean
        pa.field("operator", pa.string(), nullable=False),  # a name, "mixed" or "unchanged"
        pa.field("edits", pa.list_(pa.field("element", EDIT, nullable=False)), nullable=False),
        pa.field("distance", pa.int16(), nullable=False),  # Levenshtein, code points
        pa.field("cosine", pa.float32(), nullable=True),  # null: not scored
        pa.field("origin", pa.string(), nullable=False),
    ]
)

# A pair that validation rejected.
REJECTED_PAIR = PAIR.append(pa.field("reason", pa.string(), nullable=False))

# A row of the corpus that never became a sentence of the pool.
REJECTED_ROW = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),  # line or row number, from 1
        pa.field("origin", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),  # undecodable bytes written as \xNN
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
    ]
)

NOT_STATED = "not stated"  # a licence that is null, where it is named

# What a reader yields.
ROW = pa.schema(
    [
        pa.field("text", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("licence", pa.string(), nullable=True),  # null: not stated
    ]
)

# A sentence: normalised text and its id.
SENTENCE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
    ]
)

# A row of the pool: distinct sentences, in the order of the corpus.
POOLED = SENTENCE.append(ROW.field("licence"))


# What the columns of pairs and pools mean; the card has it as a table.
MEANINGS = {
    "id": "xxh3-64 of the sentence's UTF-8, as int64: the same sentence has the same id everywhere",
    "copy": "which of the sentence's copies, from 0",
    "source": "the sentence with errors",
    "target": "the clean sentence",
    "operator": "what made the errors; `mixed` where several did, `unchanged` where none",
    "edits": "`target[start:end]` was written as `source`; code points, half-open",
    "distance": "Levenshtein distance between source and target, in code points",
    "cosine": "similarity of source and target by the encoder named below; null: not measured",
    "origin": "where the sentence comes from",
    "text": "one sentence in its normal form (NFC, single spaces, nothing invisible)",
    "licence": "the sentence's licence, as the corpus states it; null: not stated",
}


def count_values(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    """Return how often each value of a column occurs."""
    return {item["values"]: item["counts"] for item in column.value_counts().to_pylist()}


ROW_GROUP = 65_536
VERSION_KEY = "cecdata.schema_version"

# These texts hardly ever repeat: hashing them costs a third more time and saves nothing.
_DISTINCT = ("source", "text", "detail")
_DICTIONARY_LIMIT = 1 << 28  # bytes; beyond it Parquet would silently give up a dictionary


def write_pairs(path: Path, table: pa.Table) -> None:
    """Fill `path` with the rows of a table, in row groups of 65,536.

    Text columns may be dictionary arrays (as of `build_edits`): they cost less to write and
    are read back as plain text.
    """
    with _open_writer(path, table.schema) as writer:
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


def _choose_encodings(schema: pa.Schema) -> tuple[list[str], dict[str, str]]:
    """Return the columns with a dictionary, and the encoding of others.

    Texts that repeat get a dictionary; dictionary arrays of the caller are written without hashing.
    For small integers packed differences are the cheapest to write. Ids repeat from copy to copy,
    which zstd alone compresses best (2.0 bytes a pair, 2.3 packed, 3.5 with a dictionary).
    """
    leaves = dict(_list_leaves(schema))
    texts = [name for name, kind in leaves.items() if pa.types.is_string(kind)]
    numbers = [name for name, kind in leaves.items() if pa.types.is_integer(kind) and name != "id"]
    repeated = [name for name in texts if name not in _DISTINCT]
    return repeated, dict.fromkeys(numbers, "DELTA_BINARY_PACKED")


def _list_leaves(fields: Iterable[pa.Field], before: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns of a Parquet file by their paths, with the types that a reader sees."""
    for field in fields:
        kind = _find_type_when_read(field.type)
        if pa.types.is_list(kind):
            yield from _list_leaves(kind.value_type, f"{before}{field.name}.list.element.")
        else:
            yield f"{before}{field.name}", kind


def _open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    dictionary, encodings = _choose_encodings(schema)
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


def _find_type_when_read(kind: pa.DataType) -> pa.DataType:
    """Return the type that a reader sees: that of the values for dictionaries, at any depth."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_find_type_when_read(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_find_type_when_read(field.type)) for field in kind])
    return kind


def _trim_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table with each dictionary cut to the range of texts that the table uses.

    Parquet stores a dictionary with every row group; uncut, each of the four groups of a shard
    would hold the shard's 65,536 sentences.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            array = table.column(place).combine_chunks()
            codes = array.indices.to_numpy()
            low, high = int(codes.min()), int(codes.max())
            trimmed = pa.DictionaryArray.from_arrays(
                pa.array(codes - codes.dtype.type(low)), array.dictionary.slice(low, high - low + 1)
            )
            table = table.set_column(place, field, trimmed)
    return table
