"""The embeddings of a dataset: its stores are filled, found and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from cecdata.common.durable import STATE, Lock
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.progress import Advance, silent
from cecdata.embed.base import Encoder
from cecdata.embed.store import (
    FOLDER,
    STORE,
    Ids,
    Store,
    open_store,
    read_contents,
    write_contents,
    write_range,
)
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, read_manifest
from cecdata.shards.reader import Problem
from cecdata.shards.verify import Report


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of a run."""

    sentences: int
    added: int
    rows: int  # in the store now
    truncated: int  # sentences longer than the model reads, among those added


def find_store(data: Path, name: str = "") -> Path:
    """Return the folder of the store that `data` is, or of a dataset's store.

    `name` is that of its folder; without it the dataset must have one store. Raises InputError.
    """
    if not (data / MANIFEST).is_file():
        return data
    if name:
        return data / FOLDER / name
    stores = sorted(path.parent for path in data.glob(f"{FOLDER}/*/{STORE}"))
    if not stores:
        raise InputError(f"{data} has no embeddings: `cecdata embed {data}` writes them")
    if len(stores) > 1:
        names = ", ".join(path.name for path in stores)
        raise InputError(f"{data} has embeddings of several encoders, name one: {names}")
    return stores[0]


def embed(dataset: Path, folder: Path, model: Encoder, progress: Advance = silent) -> Filled:
    """Embed the targets of a dataset, or the sentences of a pool, that the store `folder` lacks.

    The new sentences of a shard are a file, and `store.json` is written anew after each, so the
    same call continues a killed one. Raises RefusedError for another encoder's store.
    """
    shards = _sentences(dataset)
    with naming(folder):
        (folder / STATE).mkdir(parents=True, exist_ok=True)
    lock = Lock(folder / STATE / "lock", str(folder))
    lock.acquire()
    try:
        store = open_store(folder, model) if (folder / STORE).is_file() else None
        ranges = list(store.contents.ranges) if store else []
        used = {part.file for part in ranges}
        names = (name for name in (f"{n:05d}.faiss" for n in count()) if name not in used)
        sentences = added = 0
        for keys, texts in shards:
            sentences += len(texts)
            fresh = np.flatnonzero(~store.lookup(keys).found) if store else np.arange(len(keys))
            if len(fresh):
                vectors = model.encode([texts[i] for i in fresh])
                ranges.append(write_range(folder / next(names), keys[fresh], vectors))
                write_contents(folder, model, ranges)
                added += len(fresh)
            progress("embed", len(texts), None)
    finally:
        lock.release()
    rows = sum(part.rows for part in ranges)
    return Filled(sentences, added, rows, int(getattr(model, "truncated", 0)))


def verify_stores(data: Path) -> Report:
    """Check every bit of a store, or of all stores of a dataset."""
    folders = [data] if (data / STORE).is_file() else sorted((data / FOLDER).glob("*/"))
    problems: list[Problem] = []
    files = rows = 0
    for folder in folders:
        prefix = "" if folder == data else f"{FOLDER}/{folder.name}/"
        try:
            store = Store(folder, read_contents(folder))
        except VerificationError as error:
            problems.append(Problem(f"{prefix}{STORE}", str(error)))
            continue
        problems += (Problem(f"{prefix}{each.path}", each.what) for each in store.verify())
        files, rows = files + 1 + len(store.contents.ranges), rows + len(store)
    return Report("default", tuple(problems), files, rows)


def _shards(dataset: Path) -> tuple[list[str], str]:
    """Return the shards of a dataset, and their column of clean sentences."""
    manifest = read_manifest(dataset, PAIRS, POOL)
    files = [str(dataset / record.path) for part in manifest.outputs.values() for record in part]
    return files, "text" if manifest.kind == POOL else "target"


def _sentences(dataset: Path) -> Iterator[tuple[Ids, list[str]]]:
    """Yield the ids and texts of each shard's sentences, each once."""
    files, column = _shards(dataset)
    for file in files:
        table = pq.read_table(file, columns=["id", column], partitioning=None)
        keys, first = np.unique(np.asarray(table.column("id")).view(np.int64), return_index=True)
        yield keys, table.column(column).take(pa.array(first)).to_pylist()


def texts_of(dataset: Path, wanted: Ids) -> dict[int, str]:
    """Return the sentences of these ids that a dataset contains, by id."""
    files, column = _shards(dataset)
    field = ds.field("id")
    found = ds.dataset(files).to_table(columns=["id", column], filter=field.isin(wanted.tolist()))
    return dict(zip(found.column("id").to_pylist(), found.column(column).to_pylist(), strict=True))
