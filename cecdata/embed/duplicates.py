"""Pairs of sentences of a cache that are nearly the same, comparing those of near cells alone.

Sentences are put into cells: that of the centre c with the greatest x·c. Let x lie in the cell of
c, y in that of c', both of unit length. Then y·(c - c') ≤ 0, and x is at least as far from y as
from the plane between the cells: where the angle of x and y is at most θ,

    x·(c - c') ≤ sin θ · |c - c'|.

With `exact`, x is compared with all cells for which this holds, and no pair is lost, whatever the
centres are. But equality needs y to lie straight beyond the plane; in tens or hundreds of
dimensions two near sentences differ along that one line by a small part of their distance. So by
default the right side is taken `MARGIN` times. That spares most comparisons at 0.95 and above; at
0.8 cells reach so far that a third to two thirds are left, and exactly all. docs/embeddings.md has
the shares, and that of the pairs that is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecdata.embed.cache import Cache

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Progress = Callable[[str, int, int | None], None]
_CELLS = 4096  # at most
_FEW = 2048  # sentences that are not worth cells
_SAMPLE, _TURNS = 16, 5  # rows a centre is found from, and how often it is moved
_BLOCK = 8192  # rows compared with their cells at a time
_SLACK = 1e-3  # of the bound, for what fp32 rounds
MARGIN = 0.45  # of sin θ


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two ids, in the order of their unsigned values, and the cosine of their vectors."""

    one: int
    other: int
    cosine: float


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """`groups`: sets of sentences that are linked by such pairs, directly or through others."""

    pairs: int
    sentences: int  # that are in a pair
    groups: int
    likest: tuple[Likeness, ...]  # the likest first, equals by id
    compared: int  # cosines that were worked out


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows (numbers over all segments) and cosines of some pairs; all [N]."""

    one: Rows
    other: Rows
    cosine: Floats


def near_duplicates(
    cache: Cache,
    above: float,
    *,
    exact: bool = False,
    show: int = 20,
    progress: Progress | None = None,
) -> NearDuplicates:
    """Count the pairs with a cosine of at least `above`; return the `show` most similar.

    Memory: some 40 bytes a sentence, the vectors of 16,384 sentences and of the centres.
    """
    rows = _Vectors(cache)
    if not len(rows):
        return NearDuplicates(0, 0, 0, (), 0)
    width = np.float32(np.sqrt(max(0.0, 1.0 - above * above)) * (1.0 if exact else MARGIN))
    cells = _Cells.of(rows, width)
    groups = _Groups(len(cache))
    likest, pairs, compared = _none(), 0, 0
    for found, tried in _blocks(rows, cells, above, progress):
        compared += tried
        pairs += len(found.one)
        groups.join(found)
        likest = _best(likest, found, rows.keys, show)
    sentences, count = groups.count()
    return NearDuplicates(pairs, sentences, count, _named(likest, rows.keys), compared)


class _Vectors:
    """Unit vectors by row number; the first pass (`checked`) checks each."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._segments = [segment.vectors for segment in cache.segments]
        sizes = [len(vectors) for vectors in self._segments]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.keys = np.concatenate([np.empty(0, np.uint64), *(s.keys for s in cache.segments)])
        self.dimension = cache.sidecar.dimension

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, rows: Rows) -> Floats:
        """Return vectors by row as `take` does, each checked."""
        return _unit(self._cache.get(self.keys[rows]).astype(np.float32))

    def checked(self) -> Iterator[Floats]:
        for _, vectors in self._cache.batches(_BLOCK):
            yield _unit(vectors.astype(np.float32))

    def take(self, rows: Rows) -> Floats:
        out = np.empty((len(rows), self.dimension), np.float32)
        segment = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(segment).tolist():
            here = segment == number
            out[here] = self._segments[number][rows[here] - self._starts[number]]
        return _unit(out)

    def release(self) -> None:
        self._cache.release()


@dataclass(frozen=True, slots=True)
class _Cells:
    """`order`: rows cell by cell; `starts`: where each cell begins there; `cell`: by place there.

    `width`: how far beyond the plane between two cells a sentence is looked for.
    """

    centres: Floats  # [C, d]
    apart: Floats  # [C, C] distances of the centres
    order: Rows
    starts: Rows
    cell: npt.NDArray[np.int32]
    width: np.float32

    @classmethod
    def of(cls, rows: _Vectors, width: np.float32) -> _Cells:
        centres = _centres(rows)
        cell = np.empty(len(rows), np.int32)
        at = 0
        for vectors in rows.checked():
            cell[at : at + len(vectors)] = (vectors @ centres.T).argmax(axis=1)
            at += len(vectors)
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(centres) + 1))
        squares = np.einsum("cd,cd->c", centres, centres)
        apart = squares[:, None] + squares[None] - 2 * centres @ centres.T
        return cls(centres, np.sqrt(np.maximum(apart, 0)), order, starts, cell[order], width)

    def reach(self, vectors: Floats, places: Rows) -> npt.NDArray[np.bool_]:
        """Return which cells each sentence is compared with, [rows, C]."""
        cell = self.cell[places]
        inside = vectors @ self.centres.T
        own = inside[np.arange(len(cell)), cell]
        near = own[:, None] - inside <= self.width * self.apart[cell] + np.float32(_SLACK)
        # each pair once: from the sentence of the earlier cell
        return np.asarray(near & (np.arange(len(self.centres)) >= cell[:, None]))

    def members(self, cells: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield the places of each cell's sentences, one block at a time."""
        for cell in cells.tolist():
            stop = int(self.starts[cell + 1])
            for first in range(int(self.starts[cell]), stop, _BLOCK):
                yield cell, np.arange(first, min(first + _BLOCK, stop))


def _centres(rows: _Vectors) -> Floats:
    """Return centres by spherical k-means over a sample, the same for the same cache."""
    count = 1 if len(rows) <= _FEW else min(_CELLS, int(np.sqrt(len(rows))))
    rng = np.random.default_rng(0)
    drawn = rng.permutation(len(rows))[: count * _SAMPLE]
    sample = rows.first(np.sort(drawn))
    centres = sample[rng.permutation(len(sample))[:count]].copy()
    for _ in range(_TURNS if count > 1 else 0):
        nearest = np.concatenate(
            [(part @ centres.T).argmax(axis=1) for part in np.array_split(sample, _TURNS)]
        )
        order = np.argsort(nearest, kind="stable")
        starts = np.searchsorted(nearest[order], np.arange(count))
        full = np.flatnonzero(np.bincount(nearest, minlength=count))  # an empty cell stays
        centres[full] = _unit(np.add.reduceat(sample[order], starts[full], axis=0))
    return centres


def _blocks(
    rows: _Vectors, cells: _Cells, above: float, progress: Progress | None
) -> Iterator[tuple[_Pairs, int]]:
    for start in range(0, len(rows), _BLOCK):
        places = np.arange(start, min(start + _BLOCK, len(rows)))
        vectors = rows.take(cells.order[places])
        parts = range(0, len(places), 1024)
        near = np.concatenate(
            [cells.reach(vectors[at : at + 1024], places[at : at + 1024]) for at in parts]
        )
        for cell, others in cells.members(np.flatnonzero(near.any(axis=0))):
            asked, held = np.flatnonzero(near[:, cell]), rows.take(cells.order[others])
            for part in _parts(asked, len(others)):
                found = _compare(vectors[part], places[part], held, others, above)
                ordered = _Pairs(cells.order[found.one], cells.order[found.other], found.cosine)
                yield ordered, len(part) * len(others)
        rows.release()
        if progress is not None:
            progress("compare", len(places), len(rows))


def _parts(asked: Rows, others: int) -> Iterator[Rows]:
    step = max(1, 2**22 // max(1, others))
    for start in range(0, len(asked), step):
        yield asked[start : start + step]


def _compare(vectors: Floats, places: Rows, held: Floats, others: Rows, above: float) -> _Pairs:
    """Pairs of places."""
    cosine = vectors @ held.T
    one, other = np.nonzero(cosine >= above)
    once = places[one] < others[other]  # within a cell each pair comes twice, and each with itself
    one, other = one[once], other[once]
    return _Pairs(places[one], others[other], cosine[one, other])


class _Groups:
    """Sets of rows joined by pairs: each row points to a smaller one of its set or itself."""

    def __init__(self, rows: int) -> None:
        self._parent = np.arange(rows)
        self._paired = np.zeros(rows, np.bool_)

    def join(self, pairs: _Pairs) -> None:
        one, other = pairs.one, pairs.other
        self._paired[one] = True
        self._paired[other] = True
        while len(one):
            one, other = self._roots(one), self._roots(other)
            apart = one != other
            one, other = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
            np.minimum.at(self._parent, other, one)

    def count(self) -> tuple[int, int]:
        """Rows in pairs, and sets of them."""
        paired = np.flatnonzero(self._paired)
        return len(paired), len(np.unique(self._roots(paired)))

    def _roots(self, rows: Rows) -> Rows:
        found = self._parent[rows]
        while True:
            further = self._parent[found]
            if np.array_equal(further, found):
                break
            found = further
        self._parent[rows] = np.minimum(self._parent[rows], found)
        return found


def _none() -> _Pairs:
    return _Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def _best(known: _Pairs, more: _Pairs, keys: npt.NDArray[np.uint64], show: int) -> _Pairs:
    one, other = np.append(known.one, more.one), np.append(known.other, more.other)
    cosine = np.append(known.cosine, more.cosine)
    if len(cosine) > show:
        least = np.partition(cosine, len(cosine) - show)[len(cosine) - show] if show else np.inf
        keep = cosine >= least
        one, other, cosine = one[keep], other[keep], cosine[keep]
    low, high = np.minimum(keys[one], keys[other]), np.maximum(keys[one], keys[other])
    order = np.lexsort((high, low, -cosine))[:show]
    return _Pairs(one[order], other[order], cosine[order])


def _named(pairs: _Pairs, keys: npt.NDArray[np.uint64]) -> tuple[Likeness, ...]:
    one, other = keys[pairs.one], keys[pairs.other]
    low, high = (ends(one, other).view(np.int64).tolist() for ends in (np.minimum, np.maximum))
    return tuple(
        Likeness(a, b, min(1.0, c))
        for a, b, c in zip(low, high, pairs.cosine.tolist(), strict=True)
    )


def _unit(vectors: Floats) -> Floats:
    sizes = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return np.asarray(vectors / sizes[:, None], np.float32)
