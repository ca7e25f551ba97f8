"""Rates that do not depend on the scorer: over-correction, other lengths, copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.base import Report, Totals, columns, flags
from cecbench.metrics.positions import IntArray
from cecbench.metrics.rows import Row, columns_of

FIELDS = (
    "rows",
    "clean",
    "clean_changed",
    "clean_chars",
    "clean_edits",
    "length_differs",
    "copied",
    "empty",
)


def count(rows: Sequence[Row]) -> IntArray:
    """Return the counts of each row, shape (rows, len(FIELDS)); no policy is applied before.

    clean: source and target are equal. clean_edits: Levenshtein distance of such a source to its
    prediction, in code points. length_differs: prediction and source have different lengths.
    """
    error, changed, _ = flags(rows)
    clean, copied = ~error, ~changed
    _, sources, _, predictions = columns_of(rows)
    chars, answer = _lengths(sources), _lengths(predictions)
    edits = np.zeros(len(rows), dtype=np.int64)
    for index in np.flatnonzero(clean & ~copied).tolist():
        edits[index] = Levenshtein.distance(rows[index].source, rows[index].prediction)
    return columns(
        np.ones(len(rows), dtype=np.int64),
        clean,
        clean & ~copied,
        chars * clean,
        edits,
        chars != answer,
        copied,
        answer == 0,
    )


def _lengths(texts: Sequence[str]) -> IntArray:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def report(sums: Totals) -> Report:
    """Return rates as fractions; None where the denominator is 0.

    >>> import numpy as np
    >>> rows = [Row("1", "今天好。", "今天好。", "今天很好。"), Row("2", "己经", "已经", "己经")]
    >>> report(dict(zip(FIELDS, count(rows).sum(axis=0).tolist())))["over_correction_rate"]
    1.0
    """
    return {
        "over_correction_rate": _rate(sums["clean_changed"], sums["clean"]),
        "over_correction_per_1000_chars": _rate(1000 * sums["clean_edits"], sums["clean_chars"]),
        "length_violation_rate": _rate(sums["length_differs"], sums["rows"]),
        "copy_rate": _rate(sums["copied"], sums["rows"]),
        "empty_rate": _rate(sums["empty"], sums["rows"]),
    }


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
