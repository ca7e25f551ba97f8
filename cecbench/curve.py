"""The curve of a system that gives confidences: its F against the clean sentences that it changes.

At a threshold only the edits count whose confidence is at least as high. An answer changes at its
own confidences alone, so that the counts of its steps give the sums at every threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.base import Scorer, apply_policy
from cecbench.metrics.rows import IntArray, Row
from cecbench.resampling import f_statistic
from cecbench.systems.base import Answer, SureEdit, applied

REACH = 0.1  # the area is over shares of clean sentences changed from 0 to this one
SHARES = (0.005, 0.01, 0.02, 0.05, REACH)
MOST_STEPS = 200  # that are kept of a curve
_FIELDS = 5  # tp, predicted, gold; clean sentences, and those that were changed


class CurveSums:
    """The counts of each answer at its own thresholds."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        stops = scorer.policy == "strict" and scorer.stop_error
        self._policy = scorer.fallback if stops else scorer.policy
        self._given = True  # whether all answers have confidences
        self._thresholds: list[NDArray[np.float64]] = []
        self._changes: list[IntArray] = []

    def add(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Add rows with their answers."""
        variants: list[Row] = []
        thresholds: list[float] = []
        self._given &= all(answer.edits is not None for answer in answers)
        if not self._given:
            return
        for row, answer in zip(rows, answers, strict=True):
            for threshold, text in _steps(row.source, answer.edits or ()):
                variants.append(Row(str(len(variants)), row.source, row.target, text))
                thresholds.append(threshold)
        counts = self._counts(variants)
        begins = np.isinf(thresholds)
        changes = np.diff(counts, axis=0, prepend=0)
        changes[begins] = counts[begins]
        self._thresholds.append(np.array(thresholds))
        self._changes.append(changes)

    def as_dict(self) -> dict[str, object] | None:
        """Return the curve for JSON, as fractions; None without confidences or clean sentences.

        area: the mean of the highest F that is reached while at most so many clean sentences are
        changed, over shares from 0 to `reach`. points: the same at some shares, with the threshold
        that reaches it on these very rows. steps: threshold, F, share of clean sentences changed.
        """
        if not self._given or not self._changes:
            return None
        thresholds, changes = np.concatenate(self._thresholds), np.concatenate(self._changes)
        order = np.argsort(-thresholds, kind="stable")
        ordered = thresholds[order]
        ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(order) - 1)
        ordered, sums = ordered[ends], np.cumsum(changes[order], axis=0)[ends].astype(np.float64)
        if sums[0, 3] == 0:
            return None
        f = f_statistic(0, 1, 2, self._scorer.beta)(sums)
        share = sums[:, 4] / sums[:, 3]
        inside = np.minimum(share, REACH)
        area = np.diff(np.append(inside, REACH)) @ np.maximum.accumulate(f) / REACH
        at = np.arange(1, len(ends))  # before the first one no edit counts
        if len(at) > MOST_STEPS:
            at = at[np.linspace(0, len(at) - 1, MOST_STEPS).round().astype(int)]
        points = []
        for most in SHARES:
            best = int(np.argmax(np.where(share <= most, f, -1.0)))
            tp, predicted, gold = sums[best, :3].tolist()
            points.append(
                {
                    "changed_at_most": most,
                    "threshold": float(ordered[best]) if best else None,  # None: no edit at all
                    "p": tp / predicted if predicted else None,
                    "r": tp / gold if gold else None,
                    "f": float(f[best]),
                    "changed": float(share[best]),
                }
            )
        return {
            "measure": self._scorer.headline,
            "reach": REACH,
            "area": float(area),
            "points": points,
            "steps": [
                [float(ordered[one]), float(f[one]), float(share[one])] for one in at.tolist()
            ],
        }

    def _counts(self, variants: Sequence[Row]) -> IntArray:
        """Return the counts of each row, zeros where the policy leaves it out."""
        counts = np.zeros((len(variants), _FIELDS), dtype=np.int64)
        kept = apply_policy(variants, self._policy)
        if kept:
            places = [int(row.id) for row in kept]
            headline = list(self._scorer.headline_columns)
            counts[places, :3] = self._scorer.count(kept)[:, headline]
        counts[:, 3] = [row.source == row.target for row in variants]
        counts[:, 4] = [row.source == row.target != row.prediction for row in variants]
        return counts


def _steps(source: str, edits: Sequence[SureEdit]) -> Iterator[tuple[float, str]]:
    """Yield the texts of an answer, each with the highest threshold at which it is given."""
    yield np.inf, source
    for threshold in sorted({edit.confidence for edit in edits}, reverse=True):
        yield threshold, applied(source, [e for e in edits if e.confidence >= threshold])
