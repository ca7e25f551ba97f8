# ruff: noqa: N803, N806 - axes stand in the names
"""Measures on held-out sentences, and their paired differences between runs, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecbench.metrics.base import flag_rows
from cecbench.metrics.rows import IntArray, Row
from cecbench.resampling import CELLS_AT_ONCE, LEVEL, SEED
from cecdata.common.errors import CecError, UsageError
from experiments.training.runs import FinishedRun

F1, ANY_LENGTH = "S_C_f1", "F1 of any length"
MEASURES = ("exact", "over-correction", F1, ANY_LENGTH)
SHIPPED = "shipped"
THRESHOLD = "+θ"  # after the name of a side: its changes above a decision threshold alone
_PAIRS = (
    ("ppo", "start"),
    ("sft", "start"),
    ("ppo", "sft"),
    ("ppo", SHIPPED),
    ("sft", SHIPPED),
    ("ppo" + THRESHOLD, "sft" + THRESHOLD),
    ("ppo" + THRESHOLD, SHIPPED + THRESHOLD),
    ("sft" + THRESHOLD, SHIPPED + THRESHOLD),
)

Floats = npt.NDArray[np.float64]
_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference in one measure between two sides, over some seeds."""

    measure: str
    after: str  # ppo or sft, also with a threshold
    before: str  # start, sft or shipped, also with a threshold
    seeds: tuple[int, ...]
    difference: Difference


def comparisons(runs: Mapping[str, FinishedRun], seeds: Sequence[int]) -> list[Comparison]:
    """Compare PPO and SFT with the start, the shipped policy and each other.

    The seeds are those that both sides have. Several seeds are compared together first, then
    each by itself. A measure that no held-out sentence is about is left out. Raises CecError if two
    runs held out different sentences.
    """
    compared = []
    for after, before in _PAIRS:
        both = [s for s in seeds if _side(runs, after, [s])[0] and _side(runs, before, [s])[0]]
        for some in ([both] if len(both) > 1 else []) + [[seed] for seed in both]:
            for measure in MEASURES:
                value = _compare(runs, some, measure, after, before)
                if value is not None:
                    compared.append(Comparison(measure, after, before, tuple(some), value))
    return compared


def _side(
    runs: Mapping[str, FinishedRun], side: str, seeds: Sequence[int]
) -> tuple[list[FinishedRun], str]:
    """Return the finished runs of a side, and the column of their answers."""
    name = side.removesuffix(THRESHOLD)
    if name == "start":  # what a PPO run answered before its first batch
        return [runs[f"ppo-{seed}"] for seed in seeds if f"ppo-{seed}" in runs], "before"
    names = [SHIPPED if name == SHIPPED else f"{name}-{seed}" for seed in seeds]
    own = [runs[one] for one in names if one in runs]
    if name == side:
        return own, "after"
    return [run for run in own if run.has_threshold], "cautious"


def _compare(
    runs: Mapping[str, FinishedRun], seeds: Sequence[int], measure: str, after: str, before: str
) -> Difference | None:
    own, column = _side(runs, before, seeds)
    clusters, tops, bottoms = side_counts(own, measure, column)
    own, column = _side(runs, after, seeds)
    others, more_tops, more_bottoms = side_counts(own, measure, column)
    if clusters != others:
        raise _unequal(f"{after}-{seeds[0]}")
    return difference(tops, more_tops, clusters, (bottoms, more_bottoms)) if clusters else None


def change(runs: Sequence[FinishedRun], measure: str) -> Difference | None:
    """Return the difference that PPO made to the policies of these runs, which differ in the seed.

    None if no held-out sentence is about the measure.
    """
    clusters, tops, bottoms = side_counts(runs, measure, "before")
    _, more_tops, more_bottoms = side_counts(runs, measure)
    return difference(tops, more_tops, clusters, (bottoms, more_bottoms)) if clusters else None


def side_counts(
    runs: Sequence[FinishedRun], measure: str, column: str = "after"
) -> tuple[list[str], list[IntArray], list[IntArray]]:
    """Return the targets [N], and for each run the numerators and denominators, [S, N].

    Raises CecError if two runs held out different sentences.
    """
    clusters: list[str] = []
    tops, bottoms = [], []
    for run in runs:
        targets, top, bottom = counts(run.sentences(), measure, column)
        if clusters and targets != clusters:
            raise _unequal(run.run.name)
        clusters = targets
        tops.append(top)
        bottoms.append(bottom)
    return clusters, tops, bottoms


def _unequal(name: str) -> CecError:
    return CecError(f"{name} held out other sentences than the runs before: run it anew")


def counts(
    rows: Sequence[Mapping[str, str]], measure: str, column: str
) -> tuple[list[str], IntArray, IntArray]:
    """Return the targets, numerators and denominators of the rows that a measure is about.

    exact: erroneous sentences corrected to the letter. over-correction: clean ones changed. S_C_f1:
    sentence-level correction F1 over both, which is twice the corrected by the changed and the
    erroneous; as `cecbench` scores for CSCD-NS, rows whose target has another length are left out,
    and the source takes the place of an answer of another length. F1 of any length: the same over
    all rows with answers as they are. A pair that the build left unchanged is clean.
    """
    over_both = measure in (F1, ANY_LENGTH)
    about = [
        row
        for row in rows
        if over_both or (row["source"] == row["target"]) == (measure == "over-correction")
    ]
    if measure == F1:
        about = [row for row in about if len(row["source"]) == len(row["target"])]
    about.sort(key=lambda row: (row["target"], row["source"]))  # the same order for every run
    answers = [
        row["source"] if measure == F1 and len(row[column]) != len(row["source"]) else row[column]
        for row in about
    ]
    error, changed, right = flag_rows(
        [
            Row("", row["source"], row["target"], answer)
            for row, answer in zip(about, answers, strict=True)
        ]
    )
    targets = [row["target"] for row in about]
    if over_both:
        return targets, 2 * (error & right), error.astype(np.int64) + changed
    tops = right if measure == "exact" else changed
    return targets, tops.astype(np.int64), np.ones(len(about), np.int64)


def f1(run: FinishedRun) -> float:
    """Return S_C_f1 of the answers of a finished run, as a fraction."""
    _, tops, bottoms = counts(run.sentences(), F1, "after")
    return float(tops.sum() / max(1, bottoms.sum()))


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
