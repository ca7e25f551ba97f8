"""The rows between the stages: sentences with their place in the corpus, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.place import Place
from cecdata.corpus.normalise import LOCATED_SENTENCE, reject
from cecdata.shards.manifest import File
from cecdata.shards.writer import check_whole, write_pairs

# A sentence with its place in the corpus; `file` is its number among the labels.
PLACED = pa.schema([f.with_type(pa.int32()) if f.name == "file" else f for f in LOCATED_SENTENCE])
_ROWS = 8_192  # sentences in a batch of a bucket's file


def first_of_equal(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows of distinct ids, sorted by id, and the other rows (schema PLACED).

    Of equal sentences the one with the smallest (origin, licence, file, row) is left, a stated
    licence before none: so the order in which they come does not matter.
    """
    ids = np.asarray(batch.column("id"))
    if (ids[1:] > ids[:-1]).all():
        return batch, batch.slice(0, 0)
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    again = np.zeros(len(ids), np.bool_)
    again[1:] = ranked[1:] == ranked[:-1]
    if not again.any():
        return batch.take(pa.array(order)), batch.slice(0, 0)
    several = again.copy()
    several[:-1] |= again[1:]
    equal = batch.take(pa.array(order[several]))
    keys = [(name, "ascending") for name in ("id", "origin", "licence", "file", "row")]
    order[several] = order[several][np.asarray(pc.sort_indices(equal, keys))]
    return batch.take(pa.array(order[~again])), batch.take(pa.array(order[again]))


def reject_repeated(again: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return repeated sentences as rejected rows."""
    details = [f"id {value}" for value in again.column("id").to_pylist()]
    return reject(name_files(again, labels), "duplicate", details)


def name_files(batch: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return a batch of the schema PLACED with the labels of its files."""
    names = pa.array(labels, pa.string()).take(batch.column("file"))
    return batch.set_column(batch.schema.get_field_index("file"), "file", names)


def write_batches(
    place: Place, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> File:
    """Write batches of one schema as an Arrow file of the state of a build."""
    rows = 0

    def fill(path: Path) -> None:
        nonlocal rows
        # uncompressed: lz4 made a file of 35 MB a quarter smaller for twice the CPU time
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += len(batch)

    return replace(place.write(f".cecdata/{name}", fill), rows=rows)


def write_sentences(place: Place, name: str, sentences: pa.RecordBatch) -> File:
    """Write the sentences of a bucket, some thousand in a batch."""
    parts = [sentences.slice(at, _ROWS) for at in range(0, len(sentences), _ROWS)]
    return write_batches(place, name, parts, sentences.schema)


def read_sentences(place: Place, buckets: Sequence[File], start: int, stop: int) -> pa.RecordBatch:
    """Return the sentences `start` to `stop` of a pool (schema POOLED), in the order of ids."""
    pieces: list[pa.RecordBatch] = []
    before = 0
    for bucket in buckets:
        low, high = max(start - before, 0), min(stop - before, bucket.rows)
        before += bucket.rows
        if low >= high:
            continue
        with place.opened(bucket.path) as file, pa.ipc.open_file(file) as reader:
            for number in range(low // _ROWS, -(-high // _ROWS)):
                at = number * _ROWS
                batch = reader.get_batch(number)
                first = max(low - at, 0)
                pieces.append(batch.slice(first, min(high - at, len(batch)) - first))
    return pa.concat_batches(pieces)


def write_rows(place: Place, name: str, rows: pa.Table, schema: pa.Schema) -> File:
    """Write rows of a schema as a Parquet file of the dataset."""
    fill = partial(write_pairs, table=rows)
    return place.write(name, fill, lambda path: check_whole(path, len(rows), schema), len(rows))
