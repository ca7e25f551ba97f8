"""Comparison of scores: paired randomisation and Holm's correction.

Everything works on counts per sentence, shape (sentences, fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cecbench.metrics.rows import IntArray
from cecbench.resampling import (
    CELLS_AT_ONCE,
    SEED,
    Statistic,
    check_counts,
    f_statistic,
    sums_of,
)
from cecbench.scorers import Score
from cecdata.common.errors import UsageError

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of two systems on the same sentences, and the p-value of its difference."""

    first: float
    second: float
    p_value: float
    draws: int
    seed: int

    @property
    def difference(self) -> float:
        """The difference first - second."""
        return self.first - self.second


def statistic_of(score: Score) -> Statistic:
    """Return the statistic of a score's headline, as a fraction.

    It is F of the sums, without the intermediate rounding of some published scripts.
    """
    return f_statistic(*score.scorer.headline_columns, score.scorer.beta)


def paired_randomisation(
    first: IntArray,
    second: IntArray,
    statistic: Statistic,
    *,
    draws: int = 10_000,
    seed: int = SEED,
) -> Comparison:
    """Compare two systems by approximate randomisation.

    Each draw exchanges the two results of a sentence with probability 1/2. The rows of both counts
    are the same sentences in the same order. The p-value is two-sided, with 1 added to numerator
    and denominator, so that it is never 0.
    """
    check_counts(first, draws)
    if first.shape != second.shape:
        raise UsageError(
            f"paired counts must be of the same sentences: shapes {first.shape}, {second.shape}"
        )
    together, times = np.unique(np.hstack([first, second]), axis=0, return_counts=True)
    width = first.shape[1]
    moved = together[:, width:] - together[:, :width]
    sums_first, sums_second = first.sum(axis=0), second.sum(axis=0)
    observed = abs(_value(first, statistic) - _value(second, statistic))
    generator = np.random.default_rng(seed)
    extreme = 0
    step = max(1, CELLS_AT_ONCE // len(together))
    for start in range(0, draws, step):
        swapped = generator.binomial(times, 0.5, size=(min(step, draws - start), len(together)))
        shift = sums_of(swapped, moved)
        differences = statistic(sums_first + shift) - statistic(sums_second - shift)
        # The tolerance makes ties count as ties in spite of rounding.
        extreme += int(np.count_nonzero(np.abs(differences) >= observed - 1e-12))
    return Comparison(
        first=_value(first, statistic),
        second=_value(second, statistic),
        p_value=(extreme + 1) / (draws + 1),
        draws=draws,
        seed=seed,
    )


def compare_scores(first: Score, second: Score) -> Comparison:
    """Compare two scores; raise UsageError if their sentences or scorers differ."""
    if first.ids != second.ids or first.scorer.fields != second.scorer.fields:
        raise UsageError(
            "these two scores are not of the same sentences and scorer: score both under one"
            " policy that leaves no row of either out (revert, not drop)"
        )
    return paired_randomisation(first.counts, second.counts, statistic_of(first))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return p-values after Holm's step-down correction for many comparisons.

    >>> adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03})
    >>> {name: round(value, 6) for name, value in adjusted.items()}
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    ordered = sorted(p_values, key=lambda key: p_values[key])
    adjusted: dict[Key, float] = {}
    largest = 0.0
    for rank, key in enumerate(ordered):
        largest = max(largest, min(1.0, p_values[key] * (len(ordered) - rank)))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p_values}


def _value(counts: IntArray, statistic: Statistic) -> float:
    return float(statistic(counts.sum(axis=0, dtype=np.float64)[None, :])[0])
