"""Comparison of scores: paired randomisation, intervals of differences, Holm's correction, power.

Everything works on counts per sentence, shape (sentences, fields).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cecbench.benchmarks.readers import Example
from cecbench.metrics.rows import IntArray
from cecbench.resampling import (
    CELLS_AT_ONCE,
    SEED,
    Floats,
    Statistic,
    bootstrap,
    check_counts,
    f_statistic,
    sums_of,
)
from cecbench.scorers import Score
from cecdata.common.errors import UsageError

Key = TypeVar("Key")
DIFFERENCE_DRAWS = 4000
FEW_ROWS = 50  # with fewer, intervals and tests of sentences are rough
#: an id that tells the sentence's document, as in `report-7#12`
_IN_DOCUMENT = re.compile(r"(?P<document>.+)[#:/]\d+")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of two systems on the same sentences, and what its difference means.

    low, high: the bootstrap interval of the difference. detectable: the smallest difference that
    so many sentences show, that is, that a test at the level of 5 % finds in 80 % of samples.
    documents: how many were exchanged and drawn whole, because sentences of one document are alike;
    0: each sentence by itself.
    """

    first: float
    second: float
    p_value: float
    draws: int
    low: float
    high: float
    detectable: float
    documents: int = 0

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
            f"paired counts must come from the same sentences; the shapes are {first.shape}, "
            f"{second.shape}"
        )
    together, times = np.unique(np.hstack([first, second]), axis=0, return_counts=True)
    width = first.shape[1]
    moved = together[:, width:] - together[:, :width]
    sums_first, sums_second = first.sum(axis=0), second.sum(axis=0)
    values = [float(statistic(sums[None, :] * 1.0)[0]) for sums in (sums_first, sums_second)]
    observed = abs(values[0] - values[1])
    generator = np.random.default_rng(seed)
    extreme = 0
    step = max(1, CELLS_AT_ONCE // len(together))
    for start in range(0, draws, step):
        swapped = generator.binomial(times, 0.5, size=(min(step, draws - start), len(together)))
        shift = sums_of(swapped, moved)
        differences = statistic(sums_first + shift) - statistic(sums_second - shift)
        # The tolerance makes ties count as ties in spite of rounding.
        extreme += int(np.count_nonzero(np.abs(differences) >= observed - 1e-12))

    def difference(sums: Floats) -> Floats:
        return statistic(sums[:, :width]) - statistic(sums[:, width:])

    interval = bootstrap(together, times, difference, draws=DIFFERENCE_DRAWS, seed=seed)
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


def rows_needed(rows: int, detectable: float, difference: float) -> int:
    """Return the number of rows that show a difference, where `rows` show `detectable`.

    >>> rows_needed(1000, 0.02, 0.01)
    4000
    """
    return math.ceil(rows * (detectable / difference) ** 2 - 1e-9)


def compare_scores(first: Score, second: Score) -> Comparison:
    """Compare two scores; raise UsageError if their sentences or scorers differ."""
    if first.ids != second.ids or first.scorer.fields != second.scorer.fields:
        raise UsageError(
            "these two scores differ in sentences or scorer: score both with the same scorer, and "
            "with an --unequal-length that leaves no row out, such as revert"
        )
    documents = documents_of(first.ids)
    if documents is None:
        return paired_randomisation(first.counts, second.counts, statistic_of(first))
    count = int(documents.max()) + 1
    one, two = (_by_document(score.counts, documents, count) for score in (first, second))
    return replace(paired_randomisation(one, two, statistic_of(first)), documents=count)


def _by_document(counts: IntArray, documents: IntArray, count: int) -> IntArray:
    sums = np.zeros((count, counts.shape[1]), dtype=np.int64)
    np.add.at(sums, documents, counts)
    return sums


def documents_of(ids: Sequence[str]) -> IntArray | None:
    """Return the number of each sentence's document, where all ids tell it: `DOCUMENT#3`.

    `:` and `/` may stand for `#`. None where there is one document, or none has two sentences.

    >>> documents_of(["a#1", "a#2", "b#1"]).tolist(), documents_of(["car-1", "car-2"])
    ([0, 0, 1], None)
    """
    matches = [_IN_DOCUMENT.fullmatch(name) for name in ids]
    names = [match["document"] for match in matches if match]
    if len(names) < len(ids) or not 1 < len(set(names)) < len(ids):
        return None
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def simulate_counts(
    errors: int, clean: int, f: float, generator: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the counts (tp, predicted, gold) of two systems that err independently.

    errors, clean: the sentences with and without an error. f: precision and recall of both. Half of
    the errors that a system does not correct it changes to something else.
    """
    wrong = (1 - f) / 2 if clean else 1 - f
    spoilt = min(1.0, errors * (1 - f) / (2 * clean)) if clean else 0.0
    both = []
    for _ in range(2):
        drawn, touched = generator.random(errors), generator.random(clean) < spoilt
        tp = np.concatenate([drawn < f, np.zeros(clean, dtype=np.bool_)])
        predicted = np.concatenate([drawn < f + wrong, touched])
        gold = np.arange(errors + clean) < errors
        both.append(np.column_stack([tp, predicted, gold]).astype(np.int64))
    return both[0], both[1]


def compare_simulated(rows: Sequence[Example], f: float) -> tuple[Comparison, int]:
    """Return the comparison of two simulated systems on a benchmark's rows, and their number."""
    errors = sum(row.source != row.target for row in rows)
    if errors == 0:
        raise UsageError("no row of this benchmark has an error, so no system can have an F score")
    first, two = simulate_counts(errors, len(rows) - errors, f, np.random.default_rng(SEED))
    comparison = paired_randomisation(first, two, f_statistic(0, 1, 2), draws=1)
    if not comparison.detectable:
        raise UsageError(
            f"{len(rows)} rows are too few: both simulated systems judge them alike. Take a larger "
            "benchmark, or an --f1 nearer to 50"
        )
    return comparison, len(rows)


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
