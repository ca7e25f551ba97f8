"""The character-level correction score of the confusion-set-guided pointer network's evaluation.

pycorrector and CLTC carry the same rule. Detection counts positions. Correction looks only at
sentences with a rightly found position: a hit is a found position set right, a false alarm one
set wrong, and a miss an error position whose target character is **nowhere** among the characters
written at the sentence's found positions. So its recall is not over all errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics.base import Totals
from cecbench.metrics.positions import IntArray, Positions
from cecbench.metrics.rows import Row

FIELDS = ("found", "alarms", "missed", "fixed", "miswritten", "unwritten")


def columns_of(rows: Sequence[Row], where: Positions) -> tuple[IntArray, ...]:
    """One array per field of FIELDS."""
    unwritten = np.zeros(len(rows), dtype=np.int64)
    # Where every error was set right, nothing can be missing: only the others are looked into.
    for index in np.flatnonzero((where.found > 0) & (where.fixed < where.gold)).tolist():
        unwritten[index] = _unwritten(rows[index])
    return (
        where.found,
        where.changed - where.found,
        where.gold - where.found,
        where.fixed,
        where.found - where.fixed,
        unwritten,
    )


def _unwritten(row: Row) -> int:
    triples = list(zip(row.source, row.target, row.prediction, strict=False))
    written = {p for s, t, p in triples if s not in (t, p)}
    return sum(t not in written for s, t, p in triples if s != t)


Prf = tuple[float, float, float]


def detection(sums: Totals, prefix: str = "") -> Prf:
    """Precision, recall, F1 of the positions; 0 (an int, as printed) where nothing stands below."""
    return prf(*(sums[f"{prefix}{name}"] for name in FIELDS[:3]))


def correction(sums: Totals, prefix: str = "") -> Prf:
    """Precision, recall, F1 of the characters written."""
    return prf(*(sums[f"{prefix}{name}"] for name in FIELDS[3:]))


def prf(tp: int, fp: int, fn: int) -> Prf:
    """Precision, recall and F1 with the scripts' int 0 for an empty denominator.

    >>> prf(0, 0, 3)
    (0, 0.0, 0)
    """
    precision = tp / (tp + fp) if tp + fp else 0
    recall = tp / (tp + fn) if tp + fn else 0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0
