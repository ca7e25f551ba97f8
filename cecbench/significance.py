"""How sure a number is: bootstrap intervals, paired randomisation, Holm's correction.

Everything works on counts per sentence, shape (sentences, fields). Sentences with the same counts
are the same to any statistic of the sums, so resampling them means drawing how often each distinct
row of counts occurs: a multinomial draw is exactly a draw of sentences with replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.positions import IntArray
from cecbench.scorers import Score
from cecdata.errors import UsageError

Floats = NDArray[np.float64]
#: sums of fields, shape (draws, fields) → a number per draw
Statistic = Callable[[Floats], Floats]
Key = TypeVar("Key")

DRAWS = 1000
SEED = 12345
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval of a statistic over resampled sentences."""

    value: float
    low: float
    high: float
    level: float
    draws: int
    seed: int

    @property
    def signature(self) -> str:
        """How it stands in a score's signature."""
        return f"{self.draws}/{self.level:g}/seed{self.seed}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same sentences: difference of a statistic and how often chance does it."""

    first: float
    second: float
    p_value: float
    draws: int
    seed: int

    @property
    def difference(self) -> float:
        """Of the two values: first - second."""
        return self.first - self.second


def f_statistic(tp: int, predicted: int, gold: int, beta: float = 1.0) -> Statistic:
    """F of three columns as a fraction; 0 where nothing was predicted or nothing is to be found.

    >>> float(f_statistic(0, 1, 2)(np.array([[1.0, 2.0, 2.0]]))[0])
    0.5
    """
    weight = beta**2

    def statistic(sums: Floats) -> Floats:
        below = weight * sums[:, gold] + sums[:, predicted]
        above = (1 + weight) * sums[:, tp]
        return np.divide(above, below, out=np.zeros_like(above), where=below > 0)

    return statistic


def statistic_of(score: Score, key: str | None = None) -> Statistic:
    """The statistic behind one of a score's keys (its headline where none is named), as a fraction.

    It is F of the sums, not rounded on the way as the published scripts do.
    """
    key = key or score.scorer.headline
    if key not in score.scorer.ratios:
        known = ", ".join(score.scorer.ratios)
        raise UsageError(f"{score.scorer.name} has no interval for {key!r}; available: {known}")
    fields = score.scorer.fields
    tp, predicted, gold = (fields.index(name) for name in score.scorer.ratios[key])
    return f_statistic(tp, predicted, gold, score.scorer.beta)


def bootstrap(
    counts: IntArray,
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """The percentile interval of a statistic over sentences drawn with replacement.

    >>> counts = np.array([[1, 1, 1]] * 60 + [[0, 1, 1]] * 40)
    >>> interval = bootstrap(counts, f_statistic(0, 1, 2))
    >>> round(interval.value, 2), interval.low < 0.6 < interval.high
    (0.6, True)
    """
    _check(counts, draws)
    if not 0 < level < 1:
        raise UsageError(f"an interval's level lies between 0 and 1, not {level}")
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    values = np.empty(draws, dtype=np.float64)
    step = max(1, _CELLS_AT_ONCE // len(kinds))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.multinomial(len(counts), times / len(counts), size=size)
        values[start : start + size] = statistic(_sums(drawn, kinds))
    tail = (1 - level) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    return Interval(_value(counts, statistic), float(low), float(high), level, draws, seed)


def paired_randomisation(
    first: IntArray,
    second: IntArray,
    statistic: Statistic,
    *,
    draws: int = 10_000,
    seed: int = SEED,
) -> Comparison:
    """Approximate randomisation: each sentence's two results change sides with probability 1/2.

    Rows of both are the same sentences in the same order. The p-value is two-sided, with one added
    above and below, so that it is never 0.
    """
    _check(first, draws)
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
    step = max(1, _CELLS_AT_ONCE // len(together))
    for start in range(0, draws, step):
        swapped = generator.binomial(times, 0.5, size=(min(step, draws - start), len(together)))
        shift = _sums(swapped, moved)
        differences = statistic(sums_first + shift) - statistic(sums_second - shift)
        # The least of tolerances: a tie must count as a tie in spite of the last bit.
        extreme += int(np.count_nonzero(np.abs(differences) >= observed - 1e-12))
    return Comparison(
        first=_value(first, statistic),
        second=_value(second, statistic),
        p_value=(extreme + 1) / (draws + 1),
        draws=draws,
        seed=seed,
    )


def compare_scores(first: Score, second: Score, key: str | None = None) -> Comparison:
    """Paired randomisation of two scores, sentence by sentence; other sentences are refused."""
    if first.ids != second.ids or first.scorer.fields != second.scorer.fields:
        raise UsageError(
            "these two scores are not of the same sentences and scorer: score both under one"
            " policy that leaves no row of either out (revert, not drop)"
        )
    return paired_randomisation(first.counts, second.counts, statistic_of(first, key))


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Holm's step-down correction for many comparisons.

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


def _sums(times: NDArray[np.int64], kinds: IntArray) -> Floats:
    # float64 is exact up to 2^53 and has a fast matrix product; int64 has none
    sums: Floats = times.astype(np.float64) @ kinds.astype(np.float64)
    return sums


def _value(counts: IntArray, statistic: Statistic) -> float:
    return float(statistic(counts.sum(axis=0, dtype=np.float64)[None, :])[0])


def _check(counts: IntArray, draws: int) -> None:
    if len(counts) == 0:
        raise UsageError("no sentence was scored: there is nothing to resample")
    if draws < 1:
        raise UsageError(f"at least one draw is needed, not {draws}")
