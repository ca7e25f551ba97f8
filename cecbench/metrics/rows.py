"""Rows to be scored, and the positions that a row changes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

CHUNK_ROWS = 1024  # data that stay in a core's cache are processed twice as fast


class Row(NamedTuple):
    """One sentence: as written, as it should be, and as a system corrected it."""

    id: str
    source: str
    target: str
    prediction: str


def chunk_rows(rows: Iterable[tuple[str, str, str, str]]) -> Iterator[list[Row]]:
    """Yield the rows in lists of at most `CHUNK_ROWS`."""
    iterator = iter(rows)
    while block := [Row._make(row) for row in islice(iterator, CHUNK_ROWS)]:
        yield block


IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Positions:
    """Numbers of positions per sentence, each of shape (sentences,).

    gold: of G, where source and target differ. changed: of H, where source and prediction differ.
    detected: of both. corrected: of both, where prediction and target are equal. Positions end
    with the shortest of the three strings.
    """

    gold: IntArray
    changed: IntArray
    detected: IntArray
    corrected: IntArray

    @property
    def same_places(self) -> BoolArray:
        """Whether G = H."""
        return np.asarray((self.detected == self.gold) & (self.detected == self.changed))

    @property
    def all_right(self) -> BoolArray:
        """Whether G = H, and the prediction has the target's character at each position."""
        return np.asarray(self.same_places & (self.corrected == self.gold))


def count_positions(
    rows: Sequence[Row], *, ignored_source: str = "", ignored_answer: str = ""
) -> Positions:
    """Count the gold, changed, detected and corrected positions of each row (see `Positions`).

    ignored_source: positions whose source has one of these characters do not count.
    ignored_answer: a target with one of these characters does not count as gold, a prediction with
    one not as changed.
    """
    # Most sentences of most systems are clean and unchanged, and need no comparison by position.
    touched = [at for at, (_, s, t, p) in enumerate(rows) if not s == t == p]
    counts = np.zeros((4, len(rows)), dtype=np.int64)
    if not touched:
        return Positions(*counts)
    _, *texts = zip(*[rows[at] for at in touched], strict=True)
    ends, (source, target, prediction) = _align_codes(texts)
    gold = source != target
    changed = source != prediction
    if ignored_source:
        counted = ~np.isin(source, _to_codes([ignored_source]))
        gold &= counted
        changed &= counted
    if ignored_answer:
        codes = _to_codes([ignored_answer])
        gold &= ~np.isin(target, codes)
        changed &= ~np.isin(prediction, codes)
    changed_at = np.flatnonzero(changed)
    found_at = changed_at[gold[changed_at]]
    fixed_at = found_at[prediction[found_at] == target[found_at]]
    for row, places in enumerate((np.flatnonzero(gold), changed_at, found_at, fixed_at)):
        sentence_of = np.searchsorted(ends, places, side="right")
        counts[row, touched] = np.bincount(sentence_of, minlength=len(ends))
    return Positions(*counts)


def differ(first: Sequence[str], second: Sequence[str]) -> BoolArray:
    """Return per row whether two columns differ."""
    return np.fromiter(map(operator.ne, first, second), dtype=np.bool_, count=len(first))


def _align_codes(texts: Sequence[Sequence[str]]) -> tuple[IntArray, list[Codes]]:
    """Return where each sentence ends, and the code points of the columns, cut to equal lengths."""
    lengths = [list(map(len, column)) for column in texts]
    shortest = lengths[0]
    if not lengths[0] == lengths[1] == lengths[2]:
        shortest = [min(triple) for triple in zip(*lengths, strict=True)]
        texts = [[text[:n] for text, n in zip(column, shortest, strict=True)] for column in texts]
    return np.cumsum(shortest, dtype=np.int64), _to_codes(["".join(column) for column in texts])


def _to_codes(texts: list[str]) -> list[Codes]:
    """Return the code points of texts; a lone surrogate is one code point like any other."""
    return [np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4") for text in texts]
