"""Where the tasks of a build write: a folder or a place in a store, the markers they leave, and the
rows between the stages.

A file appears whole or not at all: it is written beside, read back, hashed, and renamed, or put as
one object. A task that is done leaves a marker with the sums of its files. A marker is true while
these files have their sums, so a task is repeated exactly where it must be, by whichever driver.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common import durable
from cecdata.common.codec import Json, decode, encode, seal_object, unseal_object
from cecdata.common.durable import STATE
from cecdata.common.durable.files import check_inside, naming_errors
from cecdata.common.store import Store, is_remote
from cecdata.corpus.normalise import LOCATED_SENTENCE, reject_rows
from cecdata.shards.manifest import File
from cecdata.shards.schema import NOT_STATED, check_whole, write_pairs

DONE = f"{STATE}/done"
# Folders of a finished dataset. In a folder they are staged until they are published by a rename.
PUBLISHED = ("data", "rejects", "embeddings")
_BLOCK = 1 << 22

Fill = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Done:
    """The marker of a task: its files, and the facts that later stages need."""

    task: str  # such as "read/00003"
    build: str  # the digest of the build's identity
    files: tuple[File, ...] = ()
    facts: Mapping[str, Json] = field(default_factory=dict)


class Place:
    """A folder, or the URI of a place in a store. It can be sent to another process."""

    def __init__(self, out: str) -> None:
        self.out = out
        self.store = Store(out) if is_remote(out) else None
        self.root = Path(out)

    def __reduce__(self) -> tuple[object, ...]:
        return Place, (self.out,)

    def __str__(self) -> str:
        return self.store.uri if self.store else self.out

    def write(self, name: str, fill: Fill, check: Fill = lambda _: None, rows: int = 0) -> File:
        """Write the file `name` whole, and return its sums.

        `fill` writes to a path; `check` raises an error unless what it wrote can be read there.
        """
        if self.store is None:
            path, tmp = self.find_staged(name), self.root / STATE / "tmp"
            record = durable.write(path, fill, check, tmp=tmp)
        else:
            with tempfile.TemporaryDirectory(prefix="cecdata-") as folder:
                path, tmp = Path(folder) / Path(name).name, Path(folder)
                record = durable.write(path, fill, check, tmp=tmp)
                self.store.put(path, name)
        return File(name, record.sha256, record.bytes, rows)

    def find_staged(self, name: str) -> Path:
        """Return the path at which a file of a folder is written, which may be published later."""
        is_for_later = name.split("/", maxsplit=1)[0] in PUBLISHED
        return self.root / STATE / name if is_for_later else self.root / name

    def find_path(self, name: str) -> Path:
        """Return the path of a file of a folder, which may be published."""
        staged = self.find_staged(name)
        return staged if staged.exists() else self.root / name

    @contextmanager
    def open_file(self, name: str) -> Iterator[pa.NativeFile]:
        """Open a file for reading at any place; errors name it."""
        if self.store is not None:
            with self.store.open_object(name) as file:
                yield file
            return
        path = self.find_path(name)
        with naming_errors(path), pa.OSFile(str(path)) as file:
            yield file

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file, or None if there is none."""
        if self.store is not None:
            return self.store.read(name) if self.store.find(name) else None
        path = self.find_path(name)
        with naming_errors(path):
            return path.read_bytes() if path.is_file() else None

    def is_intact(self, file: File) -> bool:
        """Return whether a file exists with its size and its SHA-256."""
        if self.store is not None:
            stored = self.store.find(file.path)
            size = None if stored is None else stored.size
        else:
            path = self.find_path(file.path)
            size = path.stat().st_size if path.is_file() else None
        if size != file.bytes:
            return False
        digest = hashlib.sha256()
        with self.open_file(file.path) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest() == file.sha256

    def find_marker(self, task: str, build: str) -> Done | None:
        """Return the record of a finished task of this build whose files are intact, else None."""
        data = self.read(f"{DONE}/{task}.json")
        if data is None:
            return None
        try:
            record = decode(Done, unseal_object(data), task)
            for file in record.files:
                check_inside(file.path)
        except ValueError:  # damaged, or a path leads out of the folder: the task is repeated
            return None
        if (record.task, record.build) != (task, build):
            return None
        return record if all(map(self.is_intact, record.files)) else None

    def mark(self, done: Done) -> None:
        """Write the marker of a task whose files are written."""
        document = encode(done)
        assert isinstance(document, dict)
        data = seal_object(document, indent=None)
        self.write(f"{DONE}/{done.task}.json", lambda path: path.write_bytes(data))


# A sentence with its place in the corpus; `file` is its number among the labels.
PLACED = pa.schema([f.with_type(pa.int32()) if f.name == "file" else f for f in LOCATED_SENTENCE])
_ROWS = 8_192  # sentences in a batch of a bucket's file


def keep_distinct(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows of distinct ids, sorted by id, and the other rows (schema PLACED).

    Of equal sentences the one with the smallest (origin, file, row) is left, with the licences of
    all: so the order in which they come does not matter.
    """
    ids = np.asarray(batch.column("id"))
    if (ids[1:] > ids[:-1]).all():
        return batch, batch.slice(0, 0)
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    is_repeat = np.zeros(len(ids), np.bool_)
    is_repeat[1:] = ranked[1:] == ranked[:-1]
    if not is_repeat.any():
        return batch.take(pa.array(order)), batch.slice(0, 0)
    has_equals = is_repeat.copy()
    has_equals[:-1] |= is_repeat[1:]
    equals = batch.take(pa.array(order[has_equals]))
    keys = [(name, "ascending") for name in ("id", "origin", "file", "row")]
    order[has_equals] = order[has_equals][np.asarray(pc.sort_indices(equals, keys))]
    rows = _join_licences(batch.take(pa.array(order)), is_repeat)
    return rows.filter(pa.array(~is_repeat)), rows.filter(pa.array(is_repeat))


def _join_licences(rows: pa.RecordBatch, is_repeat: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Give the first of equal sentences, which are next to each other, the licences of all.

    `is_repeat` marks the others.
    """
    column = rows.column("licence")
    codes = np.asarray(column.fill_null(NOT_STATED).dictionary_encode().indices)
    # of each row, the row of the first of its equals
    first = np.maximum.accumulate(np.where(is_repeat, 0, np.arange(len(is_repeat))))
    differing = np.flatnonzero(codes != codes[first]).tolist()
    if not differing:
        return rows
    licences = column.to_pylist()
    for row in differing:
        names = (licences[first[row]] or NOT_STATED, licences[row] or NOT_STATED)
        licences[first[row]] = "; ".join(sorted({*"; ".join(names).split("; ")}))
    return rows.set_column(rows.schema.get_field_index("licence"), "licence", pa.array(licences))


def reject_repeated(again: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return repeated sentences as rejected rows."""
    details = [f"id {value}" for value in again.column("id").to_pylist()]
    return reject_rows(name_files(again, labels), "duplicate", details)


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
    before = 0  # sentences in the buckets before
    for bucket in buckets:
        low, high = max(start - before, 0), min(stop - before, bucket.rows)  # in this bucket
        before += bucket.rows
        if low >= high:
            continue
        with place.open_file(bucket.path) as file, pa.ipc.open_file(file) as reader:
            first, last = low // _ROWS, -(-high // _ROWS)
            batches = pa.Table.from_batches(map(reader.get_batch, range(first, last)))
            pieces += batches.slice(low - first * _ROWS, high - low).to_batches()
    return pa.concat_batches(pieces)


def write_rows(place: Place, name: str, rows: pa.Table, schema: pa.Schema) -> File:
    """Write rows of a schema as a Parquet file of the dataset."""
    fill = partial(write_pairs, table=rows)
    return place.write(name, fill, lambda path: check_whole(path, len(rows), schema), len(rows))
