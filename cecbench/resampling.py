"""Bootstrap intervals over sentences, from counts per sentence or from how often each kind came.

Sentences with the same counts are the same to any statistic of the sums, so resampling them means
drawing how often each distinct row of counts occurs: a multinomial draw is exactly a draw of
sentences with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.positions import IntArray
from cecdata.common.errors import UsageError

Floats = NDArray[np.float64]
#: sums of fields, shape (draws, fields) → a number per draw
Statistic = Callable[[Floats], Floats]

DRAWS = 1000
FEWEST_DRAWS = 1000  # an end of a 95 % interval is then found from 25 draws beyond it
SEED = 12345
CELLS_AT_ONCE = 4_000_000


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

    def as_dict(self, measure: str) -> dict[str, object]:
        """For JSON; the numbers are fractions."""
        return {
            "measure": measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "unit": "fraction",
        }


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
    check_counts(counts, draws)
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    return of_kinds(kinds, times, statistic, draws=draws, seed=seed, level=level)


def of_kinds(
    kinds: IntArray,
    times: IntArray,
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = 0.95,
) -> Interval:
    """The same from the distinct rows of counts and how many sentences have each."""
    if not 0 < level < 1:
        raise UsageError(f"an interval's level lies between 0 and 1, not {level}")
    sentences = int(times.sum())
    generator = np.random.default_rng(seed)
    values = np.empty(draws, dtype=np.float64)
    step = max(1, CELLS_AT_ONCE // len(kinds))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = generator.multinomial(sentences, times / sentences, size=size)
        values[start : start + size] = statistic(sums_of(drawn, kinds))
    tail = (1 - level) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    value = float(statistic(sums_of(times[None, :], kinds))[0])
    return Interval(value, float(low), float(high), level, draws, seed)


def interval_of(
    triples: IntArray, times: IntArray, *, beta: float = 1.0, draws: int = DRAWS
) -> Interval:
    """The interval of F from distinct triples (tp, predicted, gold) of a sentence.

    >>> interval_of(np.array([[0, 1, 1], [1, 1, 1]]), np.array([40, 60])).value
    0.6
    """
    return of_kinds(triples, times, f_statistic(0, 1, 2, beta), draws=draws)


def check_draws(draws: int) -> None:
    """Refuses so few draws that an interval would be a guess; 0 is none at all."""
    if draws != 0 and draws < FEWEST_DRAWS:
        raise UsageError(
            f"{draws} draws are too few for an interval: at least {FEWEST_DRAWS}, or 0 for none"
        )


def sums_of(times: NDArray[np.int64], kinds: IntArray) -> Floats:
    """Sums of the fields, shape (draws, fields), for numbers of each kind, shape (draws, kinds)."""
    # float64 is exact up to 2^53 and has a fast matrix product; int64 has none
    sums: Floats = times.astype(np.float64) @ kinds.astype(np.float64)
    return sums


def check_counts(counts: IntArray, draws: int) -> None:
    """Refuses no sentences and no draws."""
    if len(counts) == 0:
        raise UsageError("no sentence was scored: there is nothing to resample")
    if draws < 1:
        raise UsageError(f"at least one draw is needed, not {draws}")
