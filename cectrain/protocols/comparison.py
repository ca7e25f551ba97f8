"""Measures on held-out sentences, and their differences between the runs of `cectrain evidence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cecbench.metrics.base import flags
from cecbench.metrics.positions import IntArray
from cecbench.metrics.rows import Row
from cecdata.common.errors import CecError
from cectrain.protocols.paired import Difference, difference
from cectrain.protocols.runner import FinishedRun

MEASURES = ("exact", "over-correction", "f1")
_PAIRS = (("ppo", "start"), ("sft", "start"), ("ppo", "sft"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference in one measure between two sides, over some seeds."""

    measure: str
    after: str  # ppo or sft
    before: str  # start or sft
    seeds: tuple[int, ...]
    difference: Difference


def comparisons(runs: Mapping[str, FinishedRun], seeds: Sequence[int]) -> list[Comparison]:
    """Compare PPO and SFT with the start, and PPO with SFT, on the seeds that both sides have.

    Several seeds are compared together first, then each by itself. A measure that no held-out
    sentence is about is left out. Raises CecError if two runs held out different sentences.
    """
    compared = []
    for after, before in _PAIRS:
        both = [seed for seed in seeds if _both(runs, seed, after, before)]
        for some in ([both] if len(both) > 1 else []) + [[seed] for seed in both]:
            for measure in MEASURES:
                value = _compare(runs, some, measure, after, before)
                if value is not None:
                    compared.append(Comparison(measure, after, before, tuple(some), value))
    return compared


def _both(runs: Mapping[str, FinishedRun], seed: int, after: str, before: str) -> bool:
    return f"{after}-{seed}" in runs and (before == "start" or f"{before}-{seed}" in runs)


def _compare(
    runs: Mapping[str, FinishedRun], seeds: Sequence[int], measure: str, after: str, before: str
) -> Difference | None:
    tops: tuple[list[IntArray], list[IntArray]] = ([], [])
    bottoms: tuple[list[IntArray], list[IntArray]] = ([], [])
    clusters: list[str] = []
    for seed in seeds:
        # The start is what a PPO run answered before its first batch.
        first = (f"ppo-{seed}", "before") if before == "start" else (f"{before}-{seed}", "after")
        for side, (name, column) in enumerate((first, (f"{after}-{seed}", "after"))):
            targets, top, bottom = counts(runs[name].sentences(), measure, column)
            if clusters and targets != clusters:
                raise CecError(f"{name} held out other sentences than the runs before: run it anew")
            clusters = targets
            tops[side].append(top)
            bottoms[side].append(bottom)
    return difference(tops[0], tops[1], clusters, bottoms) if clusters else None


def counts(
    rows: Sequence[Mapping[str, str]], measure: str, column: str
) -> tuple[list[str], IntArray, IntArray]:
    """Return the targets, numerators and denominators of the rows that a measure is about.

    exact: erroneous sentences corrected to the letter. over-correction: clean ones changed. f1: of
    sentence-level correction over both, which is twice the corrected by the changed and the
    erroneous. Answers of another length than their source count as they are; `S_C_f1` of cecbench
    and `heldout_f1` put the source in their place. A pair that the build left unchanged is clean.
    """
    about = [
        row
        for row in rows
        if measure == "f1" or (row["source"] == row["target"]) == (measure == "over-correction")
    ]
    about.sort(key=lambda row: (row["target"], row["source"]))  # the same order for every run
    error, changed, right = flags(
        [Row("", row["source"], row["target"], row[column]) for row in about]
    )
    targets = [row["target"] for row in about]
    if measure == "f1":
        return targets, 2 * (error & right), error.astype(np.int64) + changed
    tops = right if measure == "exact" else changed
    return targets, tops.astype(np.int64), np.ones(len(about), np.int64)


def f1(run: FinishedRun) -> float:
    """Return sentence-level F1 of the answers of a finished run, as a fraction."""
    _, tops, bottoms = counts(run.sentences(), "f1", "after")
    return float(tops.sum() / max(1, bottoms.sum()))
