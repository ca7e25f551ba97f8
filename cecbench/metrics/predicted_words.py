"""The character-level score of the evaluation of the confusion-set-guided pointer network.

pycorrector and CLTC have the same rule. Detection counts positions. Correction counts only in
sentences with a detected error position: a hit is a detected position that was corrected, a false
positive one that was changed to something else, and a miss an error position whose target character
was written at **none** of the sentence's detected positions. So its recall is not over all errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics.base import Totals
from cecbench.metrics.positions import IntArray, Positions
from cecbench.metrics.rows import Row

FIELDS = ("found", "alarms", "missed", "fixed", "miswritten", "unwritten")


def columns_of(rows: Sequence[Row], where: Positions) -> tuple[IntArray, ...]:
    """Return one array, shape (rows,), for each of FIELDS."""
    unwritten = np.zeros(len(rows), dtype=np.int64)
    # Only sentences with an uncorrected error can have a miss.
    for index in np.flatnonzero((where.detected > 0) & (where.corrected < where.gold)).tolist():
        unwritten[index] = _unwritten(rows[index])
    return (
        where.detected,
        where.changed - where.detected,
        where.gold - where.detected,
        where.corrected,
        where.detected - where.corrected,
        unwritten,
    )


def _unwritten(row: Row) -> int:
    triples = list(zip(row.source, row.target, row.prediction, strict=False))
    written = {p for s, t, p in triples if s not in (t, p)}
    return sum(t not in written for s, t, p in triples if s != t)


Prf = tuple[float, float, float]


def detection(sums: Totals, prefix: str = "") -> Prf:
    """Return precision, recall, F1 of detection."""
    return prf(*(sums[f"{prefix}{name}"] for name in FIELDS[:3]))


def correction(sums: Totals, prefix: str = "") -> Prf:
    """Return precision, recall, F1 of correction."""
    return prf(*(sums[f"{prefix}{name}"] for name in FIELDS[3:]))


def prf(tp: int, fp: int, fn: int) -> Prf:
    """Return precision, recall and F1, with the scripts' int 0 for an empty denominator.

    >>> prf(0, 0, 3)
    (0, 0.0, 0)
    """
    precision = tp / (tp + fp) if tp + fp else 0
    recall = tp / (tp + fn) if tp + fn else 0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0
