# ruff: noqa: N803, N806 - axes stand in the names
"""Before and after on the same sentences: the mean difference and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecdata.errors import UsageError

Floats = npt.NDArray[np.float64]
DRAWS = 4000
LEVEL = 0.95
_SEED = 12345


@dataclass(frozen=True, slots=True)
class Difference:
    """After minus before, a mean over sentences and seeds, with a percentile interval."""

    before: float
    after: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """Of the means."""
        return self.after - self.before

    @property
    def above(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0

    @property
    def below(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.high < 0


def difference(
    before_S_N: npt.ArrayLike, after_S_N: npt.ArrayLike, clusters_N: npt.ArrayLike
) -> Difference:
    """The paired difference of S seeds on N rows, resampled by cluster.

    Rows of one cluster (the corrupted copies of one sentence) are drawn together, and with them
    the results of all seeds: copies and seeds are no further sentences.

    >>> found = difference([[0, 0, 1, 1]], [[1, 1, 1, 1]], [0, 1, 2, 3])
    >>> found.value, found.low >= 0
    (0.5, True)
    """
    before, after = np.atleast_2d(np.asarray(before_S_N, float), np.asarray(after_S_N, float))
    if before.shape != after.shape or before.shape[1] != len(np.asarray(clusters_N)):
        raise UsageError(f"paired rows are wanted: shapes {before.shape} and {after.shape}")
    if before.shape[1] == 0:
        raise UsageError("no sentence was held out: there is nothing to compare")
    change_N = (after - before).mean(axis=0)
    _, place_N = np.unique(np.asarray(clusters_N), return_inverse=True)
    sums_C = np.bincount(place_N, change_N)
    sizes_C = np.bincount(place_N).astype(float)
    rng = np.random.default_rng(_SEED)
    drawn = rng.multinomial(len(sums_C), np.full(len(sums_C), 1 / len(sums_C)), size=DRAWS)
    means = (drawn @ sums_C) / (drawn @ sizes_C)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Difference(float(before.mean()), float(after.mean()), float(low), float(high))
