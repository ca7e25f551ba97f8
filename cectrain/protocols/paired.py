# ruff: noqa: N803, N806 - axes stand in the names
"""Rates on the same sentences over several seeds, and their differences, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecbench.resampling import CELLS_AT_ONCE, LEVEL, SEED
from cecdata.common.errors import UsageError

Floats = npt.NDArray[np.float64]
_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Difference:
    """Two rates, and the 95 % percentile interval of after − before."""

    before: float
    after: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """After minus before."""
        return self.after - self.before


def difference(
    before_S_N: npt.ArrayLike,
    after_S_N: npt.ArrayLike,
    clusters_N: npt.ArrayLike,
    parts: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Difference:
    """Return the paired difference of S seeds on N rows, resampled by cluster and by seed.

    Rows of one cluster (the corrupted copies of one sentence) are drawn together, because copies
    are not independent; each draw also draws S of the seeds with replacement. Rates are means
    over rows or, where `parts` gives denominators before and after (both [S, N]), ratios of sums.
    All counts are whole numbers. Raises UsageError if the shapes differ or there are no rows.

    >>> difference([[0, 0, 1, 1]], [[1, 1, 1, 1]], [0, 1, 2, 3]).value
    0.5
    >>> difference([[2, 0]], [[2, 2]], [0, 1], ([[2, 1]], [[2, 2]])).value  # F1: 2/3 → 1
    0.33333333333333337
    """
    before, after = np.atleast_2d(np.asarray(before_S_N, int), np.asarray(after_S_N, int))
    if before.shape != after.shape or before.shape[1] != len(np.asarray(clusters_N)):
        raise UsageError(f"rows must be paired, but have shapes {before.shape} and {after.shape}")
    first, second = (
        np.atleast_2d(np.asarray(part, int))
        for part in parts or (np.ones_like(before), np.ones_like(after))
    )
    sums_S_C_4 = _by_cluster([before, first, after, second], clusters_N)
    low, high = _interval(sums_S_C_4, lambda sums: _rate(sums, 2) - _rate(sums, 0))
    total = sums_S_C_4.sum(axis=(0, 1))
    return Difference(float(_rate(total, 0)), float(_rate(total, 2)), low, high)


def rate_interval(
    tops_S_N: npt.ArrayLike, bottoms_S_N: npt.ArrayLike, clusters_N: npt.ArrayLike
) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of sums, resampled as `difference` is.

    >>> rate_interval([[0, 1]], [[1, 1]], [0, 1])
    (0.0, 1.0)
    """
    columns = [np.atleast_2d(np.asarray(part, int)) for part in (tops_S_N, bottoms_S_N)]
    return _interval(_by_cluster(columns, clusters_N), lambda sums: _rate(sums, 0))


def _by_cluster(columns_S_N: list[npt.NDArray[np.int64]], clusters_N: npt.ArrayLike) -> Floats:
    """Return the sums of each column over each cluster's rows, [S, C, columns]."""
    _, place_N = np.unique(np.asarray(clusters_N), return_inverse=True)
    if not len(place_N):
        raise UsageError("no sentence was held out: there is nothing to compare")
    return np.stack(
        [[np.bincount(place_N, row).astype(float) for row in part] for part in columns_S_N], -1
    )


def _interval(sums_S_C_F: Floats, statistic: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic of sums [draws, F]."""
    seeds, clusters, fields = sums_S_C_F.shape
    sums_C_SF = sums_S_C_F.transpose(1, 0, 2).reshape(clusters, -1)
    generator, values = np.random.default_rng(SEED), []
    step = max(1, CELLS_AT_ONCE // clusters)
    for start in range(0, _DRAWS, step):
        size = min(step, _DRAWS - start)
        times_D_C = generator.multinomial(clusters, np.full(clusters, 1 / clusters), size)
        sums_D_S_F = (times_D_C @ sums_C_SF).reshape(size, seeds, fields)
        times_D_S = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size)
        values.append(statistic(np.einsum("ds,dsf->df", times_D_S, sums_D_S_F)))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(values), (tail, 1 - tail))
    return float(low), float(high)


def _rate(sums: Floats, at: int) -> Floats:
    """Return column `at` over the next one, from sums [..., F]; 0 where the denominator is 0."""
    rate: Floats = sums[..., at] / np.maximum(sums[..., at + 1], 1e-300)
    return rate
