"""Calibration of each operator to its corruption rate p_k = E[ED/len] (paper §3.2).

Each eligible position is edited independently with probability r, given that at least one and at
most `most` positions are edited. The number of edits is then a truncated binomial, so E[ED/len]
over a corpus follows exactly from the histogram of (length, positions), whatever its order. It
grows with r: r → 0 gives one edit in every sentence, the minimum, and r = 1 gives the maximum.
Where the paper's rate is outside this range (docs/paper.md row 11), the nearest reachable rate is
used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_STEPS = 60  # at most; about a dozen secant steps suffice
_NEAR = 1e-14  # tolerance, as a fraction of the target


@dataclass(frozen=True, slots=True)
class Rate:
    """The calibrated rate of one operator; all are fractions.

    `target` is the requested rate, `reachable` the nearest rate that this corpus allows, and
    `per_position` the probability of editing an eligible position that yields `reachable`.
    """

    target: float
    reachable: float
    per_position: float


def count_chances(
    positions: npt.NDArray[np.int64], rate: float, most: int, least: int = 1
) -> Floats:
    """Return P(K = 1..most) of a binomial(positions, rate) given least ≤ K ≤ most.

    The result is [positions, most]. Where there are fewer positions than `least`, all of them
    are edited.
    """
    k = np.arange(1, most + 1)
    n = positions[:, None].astype(np.float64)
    odds = rate / (1 - rate) if rate < 1 else 1e300
    log_odds = float(np.log(odds)) if odds > 0 else -1e9
    # log of P(K = k) / P(K = 1): from k - 1 to k the chance grows by (n - k + 1) / k · odds
    steps = np.maximum(n - k[1:] + 1, 0) / k[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.cumsum(np.log(np.where(steps > 0, steps, 1)) + log_odds, axis=1)
    logs = np.concatenate([np.zeros_like(n), growth], axis=1)
    logs[(k > np.maximum(n, 1)) | (k < np.minimum(n, least))] = -np.inf
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class Cells:
    """The cells of a histogram [length, positions] that hold sentences with a position."""

    def __init__(self, histogram: Counts) -> None:
        lengths, positions = np.nonzero(histogram)
        filled = (positions > 0) & (lengths > 0)
        self._lengths, positions = lengths[filled], positions[filled]
        self._positions, self._row = np.unique(positions, return_inverse=True)
        self._weights = histogram[self._lengths, positions]

    def expected_rate(self, rate: float, most: int, cost: float) -> float:
        """Return E[ED/len] at this rate per position, or 0 if no sentence has a position.

        `cost` is the mean distance of an edit.
        """
        if not len(self._lengths):
            return 0.0
        mean_edits = count_chances(self._positions, rate, most) @ np.arange(1, most + 1)
        share = cost * mean_edits[self._row] / self._lengths
        return float(np.average(share, weights=self._weights))


def calibrate(histogram: Counts, target: float, most: int, cost: float) -> Rate:
    """Return the rate per position whose E[ED/len] is `target`, or the nearest reachable one.

    `histogram` [length, positions] weighs sentences.
    """
    cells = Cells(histogram)
    least, largest = (cells.expected_rate(end, most, cost) for end in (0.0, 1.0))
    if target <= least:
        return Rate(target, least, 0.0)
    if target >= largest:
        return Rate(target, largest, 1.0)
    rate = _find_crossing(
        lambda middle: cells.expected_rate(middle, most, cost) - target,
        (0.0, least - target),
        (1.0, largest - target),
        target,
    )
    return Rate(target, cells.expected_rate(rate, most, cost), rate)


def _find_crossing(
    excess: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
    scale: float,
) -> float:
    """Return where a rising function crosses 0 between two points (x, excess), by regula falsi.

    The Illinois variant: the excess of an end that stays twice is halved, so that it moves too.
    """
    (x0, y0), (x1, y1) = low, high
    middle, side = x0, 0
    for _ in range(_STEPS):
        middle = min(max(x1 - y1 * (x1 - x0) / (y1 - y0), x0), x1)
        y = excess(middle)
        if abs(y) <= _NEAR * scale:
            break
        if y < 0:
            x0, y0, y1 = middle, y, y1 / 2 if side < 0 else y1
        else:
            x1, y1, y0 = middle, y, y0 / 2 if side > 0 else y0
        side = -1 if y < 0 else 1
    return middle


def count_table(rates: list[float], mosts: list[int], positions: int) -> Floats:
    """Return `Draws.count_cdf`: by operator, number of positions and k, P(at most k + 1 edits).

    `rates` and `mosts` are by operator, and last those of mixed pairs, which have at least two
    edits. `positions` is the largest number of positions.
    """
    table = np.ones((len(rates), positions + 1, max(mosts)))
    n = np.arange(positions + 1)
    for row, (rate, most) in enumerate(zip(rates, mosts, strict=True)):
        least = min(2, most) if row == len(rates) - 1 else 1
        table[row, :, :most] = np.cumsum(count_chances(n, rate, most, least), axis=1).clip(max=1)
        # a value that rounding left below 1 would let a draw ask for more edits than positions
        table[row, np.arange(max(mosts)) + 1 >= np.minimum(n, most)[:, None]] = 1.0
    return table
