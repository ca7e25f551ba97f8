"""Pairs of nearly equal sentences of a cache, found by comparing only sentences of near cells.

A sentence x is put into the cell of the centre c with the greatest x·c. Let x lie in the cell of c,
and y in that of c', both of unit length. Then y·(c - c') ≤ 0, and x is at least as far from y as
from the plane between the cells: if the angle of x and y is at most θ,

    x·(c - c') ≤ sin θ · |c - c'|.

With `exact`, x is compared with all cells for which this holds, and no pair is missed, whatever the
centres are. But equality needs y to lie straight beyond the plane; in tens or hundreds of
dimensions, two near sentences differ along that one line by a small part of their distance. So by
default the right side is multiplied by `MARGIN`. That saves most comparisons at a cosine of 0.95
and above; at 0.8, a third to two thirds of them remain, and with `exact` all. docs/embeddings.md
has these shares, and the share of pairs that is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from cecdata.common.progress import Advance, silent
from cecdata.embed.cache import Cache

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
_CELLS = 4096  # at most
_FEW = 2048  # most sentences for which one cell is faster than several
_SAMPLE, _TURNS = 16, 5  # rows of the sample for each centre; rounds of k-means
_BLOCK = 2048  # rows compared at a time: 16 MB of cosines
_SLACK = 1e-3  # of the bound, because fp32 rounds
_CLOSEST = {"one": pl.UInt64, "other": pl.UInt64, "cosine": pl.Float32}
MARGIN = 0.45  # of sin θ


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ids, in the order of their unsigned values, and the cosine of their vectors."""

    one: int
    other: int
    cosine: float


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """The near-duplicates of a cache. A group is a set of sentences that are linked by pairs."""

    pairs: int
    sentences: int  # that are in a pair
    groups: int
    closest: tuple[Pair, ...]  # by descending cosine, ties by id
    compared: int  # cosines that were computed


def near_duplicates(
    cache: Cache,
    above: float,
    *,
    exact: bool = False,
    show: int = 20,
    progress: Advance = silent,
) -> NearDuplicates:
    """Count the pairs with a cosine of at least `above`; return the `show` most similar.

    Memory: about 40 bytes a sentence, the vectors of 4,096 sentences, and the centres.
    """
    if not len(cache):
        return NearDuplicates(0, 0, 0, (), 0)
    keys = np.concatenate([segment.keys for segment in cache.segments])
    width = np.sqrt(max(0.0, 1.0 - above * above)) * (1.0 if exact else MARGIN)
    cells = _Cells.of(cache, keys, np.float32(width))
    groups = _Groups(len(cache))
    closest, pairs, compared = pl.DataFrame(schema=_CLOSEST), 0, 0
    for start in range(0, len(cache), _BLOCK):
        places = np.arange(start, min(start + _BLOCK, len(cache)))
        vectors = _take(cache, cells.order[places])
        for asked, others in cells.candidates(vectors, places):
            cosine = vectors[asked] @ _take(cache, cells.order[others]).T
            compared += cosine.size
            row, column = np.nonzero(cosine >= above)
            # within a cell each pair occurs twice, and each sentence with itself
            once = places[asked[row]] < others[column]
            row, column = row[once], column[once]
            if not len(row):
                continue
            one, other = cells.order[places[asked[row]]], cells.order[others[column]]
            groups.join(one, other)
            pairs += len(one)
            left, right = keys[one], keys[other]
            columns = {
                "one": np.minimum(left, right),
                "other": np.maximum(left, right),
                "cosine": cosine[row, column],
            }
            closest = pl.concat([closest, pl.DataFrame(columns, schema=_CLOSEST)]).sort(
                "cosine", "one", "other", descending=[True, False, False]
            )[:show]
        cache.release()
        progress("compare", len(places), len(cache))
    signed = closest.with_columns(pl.col("one", "other").reinterpret(signed=True))
    shown = tuple(Pair(one, other, min(1.0, c)) for one, other, c in signed.iter_rows())
    sentences, count = groups.count()
    return NearDuplicates(pairs, sentences, count, shown, compared)


def _take(cache: Cache, rows: Rows) -> Floats:
    """Return unit vectors by row, counted over all segments."""
    bounds = np.cumsum([0, *(len(segment.keys) for segment in cache.segments)])
    vectors = np.empty((len(rows), cache.sidecar.dimension), np.float32)
    for segment, first, last in zip(cache.segments, bounds, bounds[1:], strict=False):
        here = (rows >= first) & (rows < last)
        vectors[here] = segment.vectors[rows[here] - first]
    return _unit(vectors)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells. `order` has the rows cell by cell, `starts` the start of each cell in `order`.

    `cell` has the cell of each place in `order`. `width` is how far beyond the plane between two
    cells sentences are compared.
    """

    centres: Floats  # [C, d]
    apart: Floats  # [C, C] distances of the centres
    order: Rows
    starts: Rows
    cell: Rows
    width: np.float32

    @classmethod
    def of(cls, cache: Cache, keys: npt.NDArray[np.uint64], width: np.float32) -> _Cells:
        """Put every sentence into a cell; each vector is checked on the way."""
        centres = _centres(cache, keys)
        blocks = (_unit(vectors) for _, vectors in cache.batches(_BLOCK))
        cell = np.concatenate([(block @ centres.T).argmax(axis=1) for block in blocks])
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(centres) + 1))
        squares = np.einsum("cd,cd->c", centres, centres)
        apart = squares[:, None] + squares[None] - 2 * centres @ centres.T
        return cls(centres, np.sqrt(np.maximum(apart, 0)), order, starts, cell[order], width)

    def candidates(self, vectors: Floats, places: Rows) -> Iterator[tuple[Rows, Rows]]:
        """Yield (vectors, places) to compare, cell by cell.

        Sentences of different cells are compared once, from the earlier cell.
        """
        cell = self.cell[places]
        inside = vectors @ self.centres.T
        own = inside[np.arange(len(cell)), cell]
        near = own[:, None] - inside <= self.width * self.apart[cell] + np.float32(_SLACK)
        near &= np.arange(len(self.centres)) >= cell[:, None]
        for number in np.flatnonzero(near.any(axis=0)).tolist():
            asked, stop = np.flatnonzero(near[:, number]), int(self.starts[number + 1])
            for first in range(int(self.starts[number]), stop, _BLOCK):
                yield asked, np.arange(first, min(first + _BLOCK, stop))


def _centres(cache: Cache, keys: npt.NDArray[np.uint64]) -> Floats:
    """Return centres by spherical k-means over a sample, the same for the same cache."""
    count = 1 if len(keys) <= _FEW else min(_CELLS, int(np.sqrt(len(keys))))
    rng = np.random.default_rng(0)
    drawn = rng.permutation(len(keys))[: count * _SAMPLE]
    sample = _unit(cache.get(keys[np.sort(drawn)]))
    centres = sample[rng.permutation(len(sample))[:count]].copy()
    for _ in range(_TURNS if count > 1 else 0):
        nearest = np.concatenate(
            [(part @ centres.T).argmax(axis=1) for part in np.array_split(sample, _TURNS)]
        )
        order = np.argsort(nearest, kind="stable")
        starts = np.searchsorted(nearest[order], np.arange(count))
        full = np.flatnonzero(np.bincount(nearest, minlength=count))  # others keep their centre
        centres[full] = _unit(np.add.reduceat(sample[order], starts[full], axis=0))
    return centres


class _Groups:
    """Sets of rows joined by pairs: each row points to itself or to a smaller row of its set."""

    def __init__(self, rows: int) -> None:
        self._parent = np.arange(rows)
        self._paired = np.zeros(rows, np.bool_)

    def join(self, one: Rows, other: Rows) -> None:
        """Join the sets of the two rows of each pair."""
        self._paired[one] = self._paired[other] = True
        while len(one):
            one, other = self._roots(one), self._roots(other)
            apart = one != other
            one, other = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
            np.minimum.at(self._parent, other, one)

    def count(self) -> tuple[int, int]:
        """Return the number of rows in pairs, and of their sets."""
        paired = np.flatnonzero(self._paired)
        return len(paired), len(np.unique(self._roots(paired)))

    def _roots(self, rows: Rows) -> Rows:
        roots = self._parent[rows]
        while not np.array_equal(further := self._parent[roots], roots):
            roots = further
        self._parent[rows] = np.minimum(self._parent[rows], roots)
        return roots


def _unit(vectors: npt.NDArray[np.floating]) -> Floats:
    wide = vectors.astype(np.float32)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), np.float32)
