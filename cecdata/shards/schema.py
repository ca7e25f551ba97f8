"""The frozen Arrow schemas of the shards, version 1. A change here is a new version."""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1

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
        pa.field("id", pa.uint64(), nullable=False),  # xxh3-64 of the target's UTF-8
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

# A pair that validation turned down.
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
    ]
)

# The pool: normalised, distinct sentences, in the order of the corpus.
SENTENCE = pa.schema(
    [
        pa.field("id", pa.uint64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
    ]
)
