"""The embedding of a corpus into a cache, and the look-up of sentences by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cecdata.common.progress import Advance, silent
from cecdata.corpus.dedup import Dedup
from cecdata.corpus.inputs import resolve
from cecdata.corpus.normalise import Options, distinct, normalise
from cecdata.corpus.reading import empty_corpus, read
from cecdata.embed import Encoder, folders_of
from cecdata.embed.cache import CacheWriter
from cecdata.embed.cache.segments import Keys

SEGMENT = 65_536  # sentences between two commits: the most that a killed run loses
_LONGEST = 4096  # code points of a sentence, as for a build
Sentences = tuple[Keys, list[str]]


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of a run; `rejected` counts rows of the corpus by reason."""

    sentences: int
    added: int
    rows: int  # in the cache now
    rejected: dict[str, int]
    truncated: int  # sentences longer than the model reads, among those added
    faiss: bool  # whether the FAISS file is written


def fill(
    corpus: Sequence[str],
    root: Path,
    model: Encoder,
    *,
    text_column: str | None = None,
    limit: int | None = None,
    segment: int = SEGMENT,
    overwrite: bool = False,
    compact: bool = False,
    progress: Advance = silent,
) -> Filled:
    """Embed the sentences that the cache lacks; the same call continues a killed one.

    `overwrite` removes the old cache once a first sentence has been read, and raises InputError if
    the corpus has none.
    """
    rejected: Counter[str] = Counter()
    sentences = added = 0
    parts = in_parts(_read(corpus, text_column, limit, rejected), segment)
    if overwrite:
        first = next(parts, None)
        if first is None:
            raise empty_corpus(corpus, rejected)
        parts = chain([first], parts)
    files = [str(source.path) for source in resolve(corpus) if source.path]
    reads = (*files, *folders_of(model.name))
    with CacheWriter(root, model, overwrite=overwrite, reads=reads) as cache:
        for keys, texts in parts:
            sentences += len(texts)
            fresh = np.flatnonzero(~cache.cache.has(keys))
            if len(fresh):
                added += cache.add(keys[fresh], model.encode([texts[i] for i in fresh]))
            progress("embed", len(texts), None)
        if compact:
            cache.compact()
        faiss = cache.finish()
        rows = len(cache.cache)
    truncated = int(getattr(model, "truncated", 0))
    return Filled(sentences, added, rows, dict(sorted(rejected.items())), truncated, faiss)


def sentences_of(
    corpus: Sequence[str], text_column: str | None = None, limit: int | None = None
) -> Iterator[Sentences]:
    """Yield the ids and texts of a corpus's distinct sentences, normalised as in a build."""
    return _read(corpus, text_column, limit, Counter())


def _read(
    corpus: Sequence[str], text_column: str | None, limit: int | None, rejected: Counter[str]
) -> Iterator[Sentences]:
    seen, options = Dedup(), Options(1, _LONGEST)
    for rows in read(corpus, text_column=text_column, limit=limit):
        sentences = distinct(normalise(rows.batch, options), seen)
        for bad in (rows.rejected, sentences.rejected):
            rejected.update(bad.column("reason").to_pylist())
        ids = np.asarray(sentences.batch.column("id")).view(np.uint64)
        yield ids, sentences.batch.column("text").to_pylist()


def in_parts(batches: Iterator[Sentences], size: int) -> Iterator[Sentences]:
    """Yield the same sentences, `size` at a time."""
    keys: list[Keys] = []
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


def texts_of(
    wanted: npt.NDArray[np.int64] | Sequence[int], corpus: Sequence[str]
) -> dict[int, str]:
    """Return the sentences of these ids that the corpus contains, by id."""
    keys = np.unique(np.asarray(wanted, np.int64))
    text_of: dict[int, str] = {}
    for ids, texts in sentences_of(corpus):
        signed = ids.view(np.int64)
        at = np.flatnonzero(np.isin(signed, keys))
        text_of |= {int(signed[i]): texts[i] for i in at}
        if len(text_of) == len(keys):
            break
    return text_of
