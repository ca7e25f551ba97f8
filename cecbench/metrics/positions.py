"""What the scorers count by position, for many sentences at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.rows import Row

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Positions:
    """Per sentence, shape (sentences,): positions with an error, changed, both, and set right.

    G = where source and target differ, H = where source and prediction differ; positions run to
    the end of the shortest of the three strings, which is the whole sentence where lengths agree.
    """

    gold: IntArray
    changed: IntArray
    found: IntArray
    fixed: IntArray

    @property
    def has_gold(self) -> BoolArray:
        """G is not empty."""
        positive: BoolArray = self.gold > 0
        return positive

    @property
    def has_changed(self) -> BoolArray:
        """H is not empty."""
        positive: BoolArray = self.changed > 0
        return positive

    @property
    def same_places(self) -> BoolArray:
        """G = H."""
        same: BoolArray = (self.found == self.gold) & (self.found == self.changed)
        return same

    @property
    def all_right(self) -> BoolArray:
        """G = H, and the prediction has the target's character at each."""
        right: BoolArray = self.same_places & (self.fixed == self.gold)
        return right


def count_positions(
    rows: Sequence[Row], *, ignored_source: str = "", ignored_answer: str = ""
) -> Positions:
    """Counts G, H, G ∩ H and the positions set right, sentence by sentence.

    ignored_source: positions whose source has one of these characters count nowhere.
    ignored_answer: an edit that writes one of these characters is taken out of its own side.
    """
    lengths = np.array([min(len(s), len(t), len(p)) for _, s, t, p in rows], dtype=np.int64)
    source = _codes([row.source for row in rows], lengths)
    target = _codes([row.target for row in rows], lengths)
    prediction = _codes([row.prediction for row in rows], lengths)
    gold = source != target
    changed = source != prediction
    if ignored_source:
        kept = ~np.isin(source, _code_list(ignored_source))
        gold &= kept
        changed &= kept
    if ignored_answer:
        codes = _code_list(ignored_answer)
        gold &= ~np.isin(target, codes)
        changed &= ~np.isin(prediction, codes)
    found = gold & changed
    fixed = found & (prediction == target)
    ends = np.cumsum(lengths)
    return Positions(*(_per_row(mask, ends) for mask in (gold, changed, found, fixed)))


def _codes(texts: list[str], lengths: IntArray) -> NDArray[np.uint32]:
    """Code points of all texts, each cut to its length, one after the other."""
    pieces = [text[:n] for text, n in zip(texts, lengths.tolist(), strict=True)]
    # surrogatepass: a lone surrogate is one code point like any other here
    raw = "".join(pieces).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(raw, dtype="<u4")


def _code_list(characters: str) -> NDArray[np.uint32]:
    return np.array([ord(character) for character in characters], dtype=np.uint32)


def _per_row(mask: BoolArray, ends: IntArray) -> IntArray:
    # Running sums instead of add.reduceat, which has no answer for an empty row.
    running = np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))
    return np.diff(running[ends], prepend=0)
