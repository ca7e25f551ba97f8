# ruff: noqa: N803, N806 - axes stand in the names
"""The difference of two rates on the same sentences, with a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecbench import resampling
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
    """Return the paired difference of S seeds on N rows, resampled by cluster.

    Rows of one cluster (the corrupted copies of one sentence) are drawn together, with the results
    of all seeds: copies and seeds are no further sentences. Rates are means over rows or, where
    `parts` gives denominators before and after (both [S, N]), ratios of sums. All counts are whole
    numbers. Raises UsageError if the shapes differ or there are no rows.

    >>> difference([[0, 0, 1, 1]], [[1, 1, 1, 1]], [0, 1, 2, 3]).value
    0.5
    >>> difference([[2, 0]], [[2, 2]], [0, 1], ([[2, 1]], [[2, 2]])).value  # F1: 2/3 → 1
    0.33333333333333337
    """
    before, after = np.atleast_2d(np.asarray(before_S_N, int), np.asarray(after_S_N, int))
    if before.shape != after.shape or before.shape[1] != len(np.asarray(clusters_N)):
        raise UsageError(f"rows must be paired, but have shapes {before.shape} and {after.shape}")
    if before.shape[1] == 0:
        raise UsageError("no sentence was held out: there is nothing to compare")
    first, second = (
        np.atleast_2d(np.asarray(part, int))
        for part in parts or (np.ones_like(before), np.ones_like(after))
    )
    _, place_N = np.unique(np.asarray(clusters_N), return_inverse=True)
    columns = (before, first, after, second)
    sums_C_4 = np.stack([np.bincount(place_N, part.sum(axis=0)) for part in columns], 1)
    interval = resampling.bootstrap(
        sums_C_4.astype(np.int64), np.ones(len(sums_C_4), np.int64), _change, draws=_DRAWS
    )
    rates = _rates(sums_C_4.sum(axis=0))
    return Difference(float(rates[0]), float(rates[1]), interval.low, interval.high)


def _change(sums_D_4: Floats) -> Floats:
    before, after = _rates(sums_D_4)
    return after - before


def _rates(sums: Floats) -> tuple[Floats, Floats]:
    """Return the rates before and after from sums [..., 4]; 0 where the denominator is 0."""
    before, after = (sums[..., at] / np.maximum(sums[..., at + 1], 1e-300) for at in (0, 2))
    return before, after
