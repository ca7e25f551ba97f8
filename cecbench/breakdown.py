"""Scores of parts of a benchmark: by category, by number of errors, by frequency, clean apart.

Every number of a part comes from the pooled counts of its sentences; class scores are never
averaged into an overall one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cecbench import errortypes
from cecbench.errortypes import SentenceType
from cecbench.metrics.positions import BoolArray
from cecbench.metrics.rows import Row
from cecbench.scorers import Score
from cecbench.significance import bootstrap, statistic_of

COUNTS = ("1", "2", "3", "4+")
BANDS = (*(name for _, name in errortypes.FREQUENCY_BANDS), "no character")
ROWS = tuple(name for name in errortypes.SENTENCE if name != "clean")


@dataclass(frozen=True, slots=True)
class Part:
    """One part: counts of the headline measure, and precision, recall, F as fractions.

    A rate is None where there is nothing to divide by. Among sentences with errors alone a
    precision says: of those that were changed, how many were changed rightly.
    """

    name: str
    sentences: int
    tp: int
    predicted: int
    gold: int
    beta: float

    @property
    def precision(self) -> float | None:
        """Tp of what was predicted."""
        return self.tp / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Tp of what was to be found."""
        return self.tp / self.gold if self.gold else None

    @property
    def f(self) -> float | None:
        """F of precision and recall; 0 where nothing was hit."""
        if self.precision is None or self.recall is None:
            return None if not self.gold else 0.0
        weight = self.beta**2
        below = weight * self.precision + self.recall
        return (1 + weight) * self.precision * self.recall / below if below else 0.0

    def as_dict(self) -> dict[str, object]:
        """For JSON; rates are fractions."""
        return {
            "sentences": self.sentences,
            "tp": self.tp,
            "predicted": self.predicted,
            "gold": self.gold,
            "p": self.precision,
            "r": self.recall,
            "f": self.f,
        }


_Belongs = Callable[[SentenceType, str], bool]


def breakdown(score: Score, rows: Sequence[Row]) -> dict[str, object]:
    """All breakdowns of a score as one JSON object; `rows` are those that were scored from.

    Every part has its own bootstrap interval (low, high), as fractions.
    """
    by_id = {row.id: row for row in rows}
    scored = [by_id[name] for name in score.ids]
    types = [errortypes.sentence_type(row.source, row.target) for row in scored]
    return {
        "measure": score.scorer.headline,
        "category": _table(score, types, ROWS, lambda t, name: errortypes.in_row(t.category, name)),
        "errors": _table(score, types, COUNTS, lambda t, name: _number(t) == name),
        "frequency": _table(score, types, BANDS, lambda t, name: t.band == name),
        "clean": _clean(scored, types),
        "by_error": _by_error(scored, types),
        "cross_table": errortypes.cross_table(types),
    }


def _table(
    score: Score, types: Sequence[SentenceType], names: Sequence[str], belongs: _Belongs
) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in names:
        chosen = np.array([belongs(kind, name) for kind in types], dtype=np.bool_)
        if chosen.any():
            interval = bootstrap(score.counts[chosen], statistic_of(score))
            limits = {"low": interval.low, "high": interval.high}
            found[name] = {**_part(score, name, chosen).as_dict(), **limits}
    return found


def _part(score: Score, name: str, chosen: BoolArray) -> Part:
    scorer = score.scorer
    sums = score.counts[chosen].sum(axis=0)
    ratio = scorer.ratios[scorer.headline]
    tp, predicted, gold = (int(sums[scorer.fields.index(field)]) for field in ratio)
    return Part(name, int(chosen.sum()), tp, predicted, gold, scorer.beta)


def _number(kind: SentenceType) -> str:
    count = len(kind.errors)
    return "" if not count else str(count) if count < 4 else "4+"


def _clean(rows: Sequence[Row], types: Sequence[SentenceType]) -> dict[str, object]:
    clean = [row for row, kind in zip(rows, types, strict=True) if kind.category == "clean"]
    changed = sum(row.prediction != row.source for row in clean)
    rate = changed / len(clean) if clean else None
    return {"sentences": len(clean), "changed": changed, "over_correction_rate": rate}


def _by_error(rows: Sequence[Row], types: Sequence[SentenceType]) -> dict[str, object]:
    """Category → errors, how many of them were undone just so, and that share."""
    totals = dict.fromkeys(errortypes.LEAVES, 0)
    undone = dict.fromkeys(errortypes.LEAVES, 0)
    for row, kind in zip(rows, types, strict=True):
        if not kind.errors:
            continue
        done = errortypes.fixed(row.source, row.prediction, kind.errors, row.target)
        for error, hit in zip(kind.errors, done, strict=True):
            totals[error.category] += 1
            undone[error.category] += hit
    return {
        name: {"errors": count, "fixed": undone[name], "recall": undone[name] / count}
        for name, count in totals.items()
        if count
    }


def traditional(rows: Sequence[Row]) -> int:
    """Predictions that bring in traditional characters which neither source nor target has."""
    table = _traditional_characters()
    return sum(
        bool((set(row.prediction) - set(row.source) - set(row.target)) & table)
        for row in rows
        if row.prediction != row.source
    )


def _traditional_characters() -> frozenset[str]:
    from cecdata.hanzi.characters import is_standard, standard_characters, traditional_forms

    forms = (form for c in standard_characters() for form in traditional_forms(c))
    return frozenset(form for form in forms if not is_standard(form))
