"""Bootstrap intervals over sentences.

A statistic of sums cannot distinguish sentences with equal counts. So a draw of sentences with
replacement is a multinomial draw of how often each distinct row of counts occurs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.rows import IntArray
from cecdata.common.errors import UsageError

Floats = NDArray[np.float64]
#: sums of fields, shape (draws, fields) → a number per draw
Statistic = Callable[[Floats], Floats]

DRAWS = 1000  # of which 25 are outside each end of a 95 % interval
SEED = 12345
LEVEL = 0.95  # of the intervals
#: a difference of so many of its standard errors is found in 80 % of samples by a two-sided test at
#: the level of 5 %: the quantiles 0.975 and 0.8 of the normal distribution
STANDARD_ERRORS = 1.959964 + 0.841621
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval of a statistic over resampled sentences.

    detectable: the smallest difference to another system that so many sentences show in 80 % of
    samples, if both err independently; systems that err alike can be told apart by less.
    """

    value: float
    low: float
    high: float
    draws: int
    detectable: float

    @property
    def signature(self) -> str:
        """The interval's part of a score's signature."""
        return f"{self.draws}/{LEVEL:g}/seed{SEED}"

    def as_dict(self, measure: str) -> dict[str, object]:
        """Return the interval for JSON, as fractions."""
        return {
            "measure": measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": LEVEL,
            "detectable": self.detectable,
            "unit": "fraction",
        }


def make_f_statistic(tp: int, predicted: int, gold: int, beta: float = 1.0) -> Statistic:
    """Return the statistic F of three columns, a fraction that is 0 where the denominator is 0."""
    weight = beta**2

    def statistic(sums: Floats) -> Floats:
        below = weight * sums[:, gold] + sums[:, predicted]
        above = (1 + weight) * sums[:, tp]
        return np.divide(above, below, out=np.zeros_like(above), where=below > 0)

    return statistic


def bootstrap(
    kinds: IntArray, times: IntArray, statistic: Statistic, draws: int = DRAWS
) -> Interval:
    """Return the 95 % percentile interval of a statistic over sentences drawn with replacement.

    kinds: the distinct rows of counts, shape (kinds, fields); times: how many sentences have each.
    """
    refuse_no_sentences(kinds)
    sentences = int(times.sum())
    generator = np.random.default_rng(SEED)
    values = np.empty(draws, dtype=np.float64)
    step = max(1, CELLS_AT_ONCE // len(kinds))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.multinomial(sentences, times / sentences, size=size)
        values[start : start + size] = statistic(sum_draws(drawn, kinds))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    value = float(statistic(sum_draws(times[None, :], kinds))[0])
    detectable = STANDARD_ERRORS * math.sqrt(2) * float(values.std())
    return Interval(value, float(low), float(high), draws, detectable)


class Triples:
    """How often each triple (tp, predicted, gold) occurs among sentences.

    A bootstrap needs no more, and there are few different ones, however many sentences there are.
    """

    def __init__(self) -> None:
        self._times: Counter[tuple[int, ...]] = Counter()

    def add(self, triples: Iterable[Sequence[int]]) -> None:
        """Count the triples of further sentences."""
        self._times.update(map(tuple, triples))

    def __len__(self) -> int:
        """Return the number of sentences."""
        return self._times.total()

    @property
    def sums(self) -> tuple[int, int, int]:
        """The sums of tp, predicted and gold."""
        tp, predicted, gold = (
            sum(times * triple[part] for triple, times in self._times.items()) for part in range(3)
        )
        return tp, predicted, gold

    def interval(self, beta: float = 1.0) -> Interval:
        """Return the bootstrap interval of F."""
        kinds = sorted(self._times)
        times = np.array([self._times[kind] for kind in kinds], dtype=np.int64)
        return bootstrap(np.array(kinds, dtype=np.int64), times, make_f_statistic(0, 1, 2, beta))


def sum_draws(times: NDArray[np.int64], kinds: IntArray) -> Floats:
    """Return the sums of the fields, shape (draws, fields); `times` has shape (draws, kinds)."""
    # float64 is exact up to 2^53 and, unlike int64, has a fast matrix product
    return times.astype(np.float64) @ kinds.astype(np.float64)


def refuse_no_sentences(counts: IntArray) -> None:
    """Raise UsageError without sentences."""
    if len(counts) == 0:
        raise UsageError("no sentence was scored: there is nothing to resample")
