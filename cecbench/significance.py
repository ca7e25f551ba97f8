"""Comparison of scores: paired randomisation, intervals of differences, Holm's correction.

Everything works on counts per sentence, shape (sentences, fields).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cecbench import resampling
from cecbench.metrics.rows import IntArray
from cecbench.scorers import Score
from cecdata.common.errors import UsageError

Key = TypeVar("Key")
DIFFERENCE_DRAWS = 4000
FEW_ROWS = 50  # with fewer, intervals and tests of sentences are rough


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of two systems on the same sentences, and what its difference means.

    low, high: the bootstrap interval of the difference. detectable: the smallest difference that
    so many sentences show, that is, that a test at the level of 5 % finds in 80 % of samples.
    """

    first: float
    second: float
    p_value: float
    draws: int
    low: float
    high: float
    detectable: float

    @property
    def difference(self) -> float:
        return self.first - self.second


def compare_by_randomisation(
    first: IntArray, second: IntArray, statistic: resampling.Statistic, *, draws: int = 10_000
) -> Comparison:
    """Compare two systems by approximate randomisation.

    Each draw exchanges the two results of a sentence with probability 1/2. The rows of both counts
    are the same sentences in the same order. The p-value is two-sided, with 1 added to numerator
    and denominator, so that it is never 0.
    """
    resampling.refuse_no_sentences(first)
    # the distinct rows, counts of the first beside those of the second, and how often each occurs
    together, times = np.unique(np.hstack([first, second]), axis=0, return_counts=True)
    width = first.shape[1]
    moved = together[:, width:] - together[:, :width]  # from the second to the first by an exchange
    sums_first, sums_second = first.sum(axis=0), second.sum(axis=0)
    values = [float(statistic(sums[None, :] * 1.0)[0]) for sums in (sums_first, sums_second)]
    observed = abs(values[0] - values[1])
    generator = np.random.default_rng(resampling.SEED)
    extreme = 0
    step = max(1, resampling.CELLS_AT_ONCE // len(together))
    for start in range(0, draws, step):
        swapped = generator.binomial(times, 0.5, size=(min(step, draws - start), len(together)))
        shift = resampling.sum_draws(swapped, moved)
        differences = statistic(sums_first + shift) - statistic(sums_second - shift)
        # The tolerance makes ties count as ties in spite of rounding.
        extreme += int(np.count_nonzero(np.abs(differences) >= observed - 1e-12))

    def difference(sums: resampling.Floats) -> resampling.Floats:
        return statistic(sums[:, :width]) - statistic(sums[:, width:])

    interval = resampling.bootstrap(together, times, difference, DIFFERENCE_DRAWS)
    return Comparison(
        first=values[0],
        second=values[1],
        p_value=(extreme + 1) / (draws + 1),
        draws=draws,
        low=interval.low,
        high=interval.high,
        # that of an interval is for two systems that err independently
        detectable=interval.detectable / math.sqrt(2),
    )


def compare_scores(first: Score, second: Score) -> Comparison:
    """Compare the F of two scores, without the rounding of some published scripts on the way.

    Raises UsageError if their sentences or scorers differ.
    """
    if first.ids != second.ids or first.scorer.fields != second.scorer.fields:
        raise UsageError(
            "these two scores differ in sentences or scorer: score both with the same scorer, and "
            "with an --unequal-length that leaves no row out, such as revert"
        )
    statistic = resampling.make_f_statistic(*first.scorer.headline_columns, first.scorer.beta)
    return compare_by_randomisation(first.counts, second.counts, statistic)


def correct_by_holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return p-values after Holm's step-down correction for many comparisons."""
    ordered = sorted(p_values, key=lambda key: p_values[key])
    adjusted: dict[Key, float] = {}
    largest = 0.0
    for rank, key in enumerate(ordered):
        largest = max(largest, min(1.0, p_values[key] * (len(ordered) - rank)))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p_values}
