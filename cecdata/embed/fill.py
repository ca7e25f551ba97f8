"""The embedding of a corpus or a dataset into a store, and the texts of ids."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds

from cecdata.common.durable import STATE, Lock
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError
from cecdata.common.progress import Advance, silent
from cecdata.corpus.normalise import Options, distinct, normalise
from cecdata.corpus.reading import empty_corpus, read
from cecdata.embed.base import Encoder
from cecdata.embed.store import (
    FOLDER,
    STORE,
    Ids,
    Range,
    Store,
    folder_of,
    open_store,
    write_contents,
    write_range,
)
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, read_manifest

AT_ONCE = 65_536  # sentences of a file: the most that a killed run loses
_LONGEST = 4096  # code points of a sentence, as for a build
_LOCK = f"{STATE}/lock"
_TMP = f"{STATE}/tmp"  # noqa: S108 - below the folder of the store
Sentences = tuple[Ids, list[str]]


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of a run; `rejected` counts rows of the corpus by reason."""

    sentences: int
    added: int
    rows: int  # in the store now
    rejected: dict[str, int]
    truncated: int  # sentences longer than the model reads, among those added


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a finished dataset."""
    return (folder / MANIFEST).is_file()


def find_store(data: Path, name: str = "") -> Path:
    """Return the folder of the store that `data` is, or of a dataset's store.

    `name` is the encoder's; without it the dataset must have one store. Raises InputError.
    """
    if not is_dataset(data):
        return data
    if name:
        return data / FOLDER / folder_of(name)
    stores = sorted(path.parent for path in data.glob(f"{FOLDER}/*/{STORE}"))
    if not stores:
        raise InputError(f"{data} has no embeddings: `cecdata embed {data}` writes them")
    if len(stores) > 1:
        names = ", ".join(path.name for path in stores)
        raise InputError(f"{data} has embeddings of several encoders, name one: {names}")
    return stores[0]


def embed_corpus(
    corpus: Sequence[str],
    folder: Path,
    model: Encoder,
    *,
    text_column: str | None = None,
    limit: int | None = None,
    progress: Advance = silent,
) -> Filled:
    """Embed the sentences of a corpus that the store lacks; the same call continues a killed one.

    Raises InputError for a corpus without a sentence, RefusedError for another encoder's store.
    """
    rejected: Counter[str] = Counter()
    batches = _read(corpus, text_column, limit, rejected)
    first = next(batches, None)
    if first is None:
        raise empty_corpus(corpus, rejected)
    return _fill(chain([first], batches), folder, model, rejected, progress)


def embed_dataset(dataset: Path, model: Encoder, *, progress: Advance = silent) -> Filled:
    """Embed the targets of a dataset, or the sentences of a pool, that its store lacks."""
    return _fill(_targets(dataset), find_store(dataset, model.name), model, Counter(), progress)


def _fill(
    batches: Iterator[Sentences],
    folder: Path,
    model: Encoder,
    rejected: Counter[str],
    progress: Advance,
) -> Filled:
    """Write one file for each `AT_ONCE` new sentences, and `store.json` anew after each."""
    with naming(folder):
        (folder / STATE).mkdir(parents=True, exist_ok=True)
    lock = Lock(folder / _LOCK, str(folder))
    lock.acquire()
    try:
        shutil.rmtree(folder / _TMP, ignore_errors=True)  # what a killed run left
        with naming(folder):
            (folder / _TMP).mkdir()
        store = open_store(folder, model) if (folder / STORE).is_file() else None
        ranges = list(store.contents.ranges) if store else []
        used = {part.file for part in ranges}
        names = (name for name in (f"{n:05d}.faiss" for n in count()) if name not in used)
        sentences = added = 0
        for keys, texts in in_parts(batches, AT_ONCE):
            sentences += len(texts)
            part = _write_new(store, folder / next(names), model, keys, texts)
            if part is not None:
                ranges.append(part)
                write_contents(folder, model, ranges, folder / _TMP)
                store, added = open_store(folder, model), added + part.rows
            progress("embed", len(texts), None)
    finally:
        lock.release()
    rows = sum(part.rows for part in ranges)
    truncated = int(getattr(model, "truncated", 0))
    return Filled(sentences, added, rows, dict(sorted(rejected.items())), truncated)


def _write_new(
    store: Store | None, path: Path, model: Encoder, keys: Ids, texts: list[str]
) -> Range | None:
    """Write the sentences that the store lacks; return None where it has all."""
    fresh = np.flatnonzero(~store.has(keys)) if store else np.arange(len(keys))
    if not len(fresh):
        return None
    vectors = model.encode([texts[i] for i in fresh])
    return write_range(path, keys[fresh], vectors, path.parent / _TMP)


def sentences_of(
    corpus: Sequence[str], text_column: str | None = None, limit: int | None = None
) -> Iterator[Sentences]:
    """Yield the ids and texts of a corpus's distinct sentences, normalised as in a build."""
    return _read(corpus, text_column, limit, Counter())


def _read(
    corpus: Sequence[str], text_column: str | None, limit: int | None, rejected: Counter[str]
) -> Iterator[Sentences]:
    seen, options = set[int](), Options(1, _LONGEST)
    for rows in read(corpus, text_column=text_column, limit=limit):
        sentences = distinct(normalise(rows.batch, options), seen)
        for bad in (rows.rejected, sentences.rejected):
            rejected.update(bad.column("reason").to_pylist())
        if len(sentences.batch):
            ids = np.asarray(sentences.batch.column("id")).view(np.int64)
            yield ids, sentences.batch.column("text").to_pylist()


def _shards(dataset: Path) -> tuple[list[str], str]:
    """Return the shards of a dataset, and their column of clean sentences."""
    manifest = read_manifest(dataset, PAIRS, POOL)
    files = [str(dataset / record.path) for part in manifest.outputs.values() for record in part]
    return files, "text" if manifest.kind == POOL else "target"


def _targets(dataset: Path) -> Iterator[Sentences]:
    """Yield the ids and texts of a dataset's sentences; the copies of one follow each other."""
    files, column = _shards(dataset)
    for file in files:
        last = None
        for batch in ds.dataset(file).to_batches(columns=["id", column]):
            ids = np.asarray(batch.column("id")).view(np.int64)
            fresh = np.flatnonzero(np.r_[ids[:1] != last, ids[1:] != ids[:-1]])
            if len(fresh):
                yield ids[fresh], batch.column(column).take(pa.array(fresh)).to_pylist()
                last = ids[-1]


def in_parts(batches: Iterator[Sentences], size: int) -> Iterator[Sentences]:
    """Yield the same sentences, `size` at a time."""
    keys: list[Ids] = []
    texts: list[str] = []
    for more_keys, more in batches:
        keys.append(more_keys)
        texts += more
        while len(texts) >= size:
            whole = np.concatenate(keys)
            yield whole[:size], texts[:size]
            keys, texts = [whole[size:]], texts[size:]
    if texts:
        yield np.concatenate(keys), texts


def texts_in_dataset(dataset: Path, wanted: npt.NDArray[np.int64]) -> dict[int, str]:
    """Return the sentences of these ids that a dataset contains, by id."""
    files, column = _shards(dataset)
    field = ds.field("id")
    found = ds.dataset(files).to_table(columns=["id", column], filter=field.isin(wanted.tolist()))
    return dict(zip(found.column("id").to_pylist(), found.column(column).to_pylist(), strict=True))


def texts_in_corpus(corpus: Sequence[str], wanted: npt.NDArray[np.int64]) -> dict[int, str]:
    """Return the sentences of these ids that a corpus contains, by id."""
    keys = np.unique(wanted)
    text_of: dict[int, str] = {}
    for ids, texts in sentences_of(corpus):
        text_of |= {int(ids[i]): texts[i] for i in np.flatnonzero(np.isin(ids, keys))}
        if len(text_of) == len(keys):
            break
    return text_of
