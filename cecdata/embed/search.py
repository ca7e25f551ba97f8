"""Search for the sentences of a cache that are most similar to a query.

FAISS finds candidates in its mapped file or, if it sees a GPU, in the vectors block by block. Their
cosines are then computed from the stored vectors, so that numbers and order do not depend on which
of the two was searched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cecdata.embed.cache import Cache
from cecdata.embed.cache.faiss_file import block_search, gpus, open_index, search
from cecdata.embed.cache.segments import Keys

Floats = npt.NDArray[np.float32]
Wide = npt.NDArray[np.float64]
_SPARE = 16  # candidates beyond those asked for: FAISS rounds, and orders ties arbitrarily
_BLOCK = 131_072  # rows on the GPU at a time: half a gigabyte at d = 1024


def nearest(cache: Cache, queries: Floats, count: int) -> tuple[Wide, Keys]:
    """Return the cosines and ids of the `count` rows nearest to each query, nearest first.

    Rows with equal cosines are sorted by id. Queries: [Q, dimension]; both results:
    [Q, min(count, rows)].
    """
    count = min(count, len(cache))
    if not count:
        return np.empty((len(queries), 0)), np.empty((len(queries), 0), np.uint64)
    wanted = min(count + _SPARE, len(cache))
    if gpus():
        nearest_rows = by_blocks(cache, queries, wanted, on_gpu=True)
    else:
        nearest_rows = search(open_index(cache), queries, wanted)[1]
    return ranked(cache, queries, nearest_rows, count)


def by_blocks(
    cache: Cache, queries: Floats, count: int, *, on_gpu: bool, block: int = _BLOCK
) -> Keys:
    """Return the ids of the nearest rows, [Q, count], from all vectors, without the FAISS file."""
    find = block_search(np.ascontiguousarray(queries, np.float32), on_gpu=on_gpu)
    best = np.full((len(queries), 0), 0, np.float32)
    ids = np.zeros((len(queries), 0), np.uint64)
    for keys, vectors in cache.batches(block):
        cosine, rows = find(vectors.astype(np.float32), min(count, len(keys)))
        best = np.concatenate([best, cosine], axis=1)
        ids = np.concatenate([ids, keys[rows]], axis=1)
        keep = np.argsort(-best, axis=1, kind="stable")[:, :count]
        best, ids = np.take_along_axis(best, keep, 1), np.take_along_axis(ids, keep, 1)
    return ids


def ranked(cache: Cache, queries: Floats, candidates: Keys, count: int) -> tuple[Wide, Keys]:
    """Return the cosines and ids of the best `count` candidates [Q, C] by their exact cosine."""
    cosine = np.empty(candidates.shape, np.float64)
    for row, (query, ids) in enumerate(zip(queries.astype(np.float64), candidates, strict=True)):
        vectors = cache.get(ids).astype(np.float64)
        sizes = np.sqrt(np.einsum("cd,cd->c", vectors, vectors) * (query @ query))
        cosine[row] = np.einsum("cd,d->c", vectors, query) / sizes
    order = np.lexsort((candidates, -cosine), axis=1)[:, :count]
    return np.take_along_axis(cosine, order, 1), np.take_along_axis(candidates, order, 1)
