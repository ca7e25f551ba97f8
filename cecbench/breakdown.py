"""Scores of parts of a benchmark: by category, by number of errors, by frequency, clean apart.

Every number of a part comes from the pooled counts of its sentences; class scores are never
averaged into an overall one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cecbench import errortypes
from cecbench.errortypes import SentenceType
from cecbench.metrics.base import Scorer
from cecbench.metrics.positions import IntArray
from cecbench.metrics.rows import Row
from cecbench.resampling import interval_of

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


class Breakdown:
    """How often each triple (tp, predicted, gold) came in every part, over rows taken so far."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._triples: dict[tuple[str, str], Counter[tuple[int, ...]]] = {}
        self._clean = self._changed = 0
        self._errors: Counter[str] = Counter()
        self._undone: Counter[str] = Counter()
        self._cross: dict[str, Counter[str]] = {leaf: Counter() for leaf in errortypes.LEAVES}

    def add(self, rows: Sequence[Row], counts: IntArray) -> None:
        """Adds scored rows with their counts, shape (rows, fields)."""
        triples = counts[:, list(self._scorer.headline_columns)].tolist()
        for row, triple in zip(rows, triples, strict=True):
            kind = errortypes.sentence_type(row.source, row.target)
            if kind.category == "clean":
                self._clean += 1
                self._changed += row.prediction != row.source
            for part in _parts_of(kind):
                self._triples.setdefault(part, Counter())[tuple(triple)] += 1
            self._add_errors(row, kind)

    def as_dict(self) -> dict[str, object]:
        """All breakdowns as one JSON object; every part has a bootstrap interval, as fractions."""
        rate = self._changed / self._clean if self._clean else None
        return {
            "measure": self._scorer.headline,
            "category": self._table("category", ROWS),
            "errors": self._table("errors", COUNTS),
            "frequency": self._table("frequency", BANDS),
            "clean": {
                "sentences": self._clean,
                "changed": self._changed,
                "over_correction_rate": rate,
            },
            "by_error": {
                name: {"errors": n, "fixed": self._undone[name], "recall": self._undone[name] / n}
                for name in errortypes.LEAVES
                if (n := self._errors[name])
            },
            "cross_table": {
                leaf: {name: self._cross[leaf][name] for name in errortypes.LEAVES}
                for leaf in errortypes.LEAVES
            },
        }

    def _add_errors(self, row: Row, kind: SentenceType) -> None:
        """Error → whether it was undone just so; and what else holds of it."""
        if not kind.errors:
            return
        done = errortypes.fixed(row.source, row.prediction, kind.errors, row.target)
        for error, hit in zip(kind.errors, done, strict=True):
            self._errors[error.category] += 1
            self._undone[error.category] += hit
            self._cross[error.category].update(error.properties)

    def _table(self, kind: str, names: Sequence[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in names:
            triples = self._triples.get((kind, name))
            if triples is None:
                continue
            kinds = np.array(sorted(triples), dtype=np.int64)
            times = np.array([triples[tuple(one)] for one in kinds.tolist()], dtype=np.int64)
            tp, predicted, gold = (times @ kinds).tolist()
            beta = self._scorer.beta
            part = Part(name, int(times.sum()), tp, predicted, gold, beta)
            interval = interval_of(kinds, times, beta=beta)
            found[name] = {**part.as_dict(), "low": interval.low, "high": interval.high}
        return found


def _parts_of(kind: SentenceType) -> Iterator[tuple[str, str]]:
    """The parts that a sentence belongs to; a clean one to none."""
    if kind.category == "clean":
        return
    for name in ROWS:
        if errortypes.in_row(kind.category, name):
            yield "category", name
    count = len(kind.errors)
    if count:
        yield "errors", str(count) if count < 4 else "4+"
    yield "frequency", kind.band


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
