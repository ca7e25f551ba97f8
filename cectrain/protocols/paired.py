# ruff: noqa: N803, N806 - axes stand in the names
"""Before and after on the same sentences: the difference of two rates and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import UsageError

Floats = npt.NDArray[np.float64]
DRAWS = 4000
LEVEL = 0.95
_SEED = 12345


@dataclass(frozen=True, slots=True)
class Difference:
    """After minus before, over sentences and seeds, with a percentile interval."""

    before: float
    after: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """Of the rates."""
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
    before_S_N: npt.ArrayLike,
    after_S_N: npt.ArrayLike,
    clusters_N: npt.ArrayLike,
    parts: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Difference:
    """The paired difference of S seeds on N rows, resampled by cluster.

    Rows of one cluster (the corrupted copies of one sentence) are drawn together, and with them
    the results of all seeds: copies and seeds are no further sentences. Rates are means over rows,
    or, where `parts` gives denominators before and after (both [S, N]), ratios of sums.

    >>> found = difference([[0, 0, 1, 1]], [[1, 1, 1, 1]], [0, 1, 2, 3])
    >>> found.value, found.low >= 0
    (0.5, True)
    >>> difference([[2, 0]], [[2, 2]], [0, 1], ([[2, 1]], [[2, 2]])).value  # F1: 2/3 → 1
    0.33333333333333337
    """
    before, after = np.atleast_2d(np.asarray(before_S_N, float), np.asarray(after_S_N, float))
    if before.shape != after.shape or before.shape[1] != len(np.asarray(clusters_N)):
        raise UsageError(f"paired rows are wanted: shapes {before.shape} and {after.shape}")
    if before.shape[1] == 0:
        raise UsageError("no sentence was held out: there is nothing to compare")
    first, second = (
        np.atleast_2d(np.asarray(part, float))
        for part in parts or (np.ones_like(before), np.ones_like(after))
    )
    _, place_N = np.unique(np.asarray(clusters_N), return_inverse=True)
    sums_4_C = np.stack(
        [np.bincount(place_N, part.sum(axis=0)) for part in (before, first, after, second)]
    )
    rng = np.random.default_rng(_SEED)
    clusters = sums_4_C.shape[1]
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS)
    rates_D = _rates(drawn.astype(float) @ sums_4_C.T)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(rates_D[1] - rates_D[0], (tail, 1 - tail))
    rates = _rates(sums_4_C.sum(axis=1))
    return Difference(float(rates[0]), float(rates[1]), float(low), float(high))


def _rates(sums: Floats) -> tuple[Floats, Floats]:
    """Before and after from [..., 4] sums: numerator and denominator of each; 0 of nothing is 0."""
    counted = [sums[..., at] / np.maximum(sums[..., at + 1], 1e-300) for at in (0, 2)]
    return counted[0], counted[1]
