"""The frozen Arrow schemas of the shards, version 2. A change here is a new version.

In version 1 the column `id` was uint64 with the same bits; `as_current` reads it. Writer, reader,
card, frames and checks follow these schemas: CONTRIBUTING.md says how a column is added.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

SCHEMA_VERSION = 2

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


# Columns of pairs that a later version added, which must be nullable, and that version. Rows of an
# earlier version have nulls there.
ADDED: dict[str, int] = {}


def as_current(batch: pa.RecordBatch, names: Sequence[str] = ()) -> pa.RecordBatch:
    """Return rows of any version with an `id` of this version; the texts are not copied.

    `names` are the columns to return, in their order; by default those of the batch.
    """
    columns, fields = [], []
    for name in names or batch.schema.names:
        field = PAIR.field(name) if name in PAIR.names else batch.schema.field(name)
        if name not in batch.schema.names:
            column = pa.nulls(len(batch), field.type)
        elif batch.schema.field(name).type == pa.uint64():
            column = batch.column(name).view(pa.int64())
        else:
            column, field = batch.column(name), batch.schema.field(name)
        columns.append(column)
        fields.append(field)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
