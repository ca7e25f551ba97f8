"""Scores of the parts of a benchmark: by category, and clean ones.

Every number of a part comes from the pooled counts of its sentences; scores are never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cecbench import errortypes
from cecbench.metrics.base import Scorer
from cecbench.metrics.rows import IntArray, Row
from cecbench.resampling import interval_of

ROWS = tuple(name for name in errortypes.SENTENCE if name != "clean")


class Breakdown:
    """The count of each triple (tp, predicted, gold) in each part of the rows added so far."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._triples: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in ROWS}
        self._clean = self._changed = 0

    def add(self, rows: Sequence[Row], counts: IntArray) -> None:
        """Add scored rows with their counts, shape (rows, fields)."""
        triples = counts[:, list(self._scorer.headline_columns)].tolist()
        for row, triple in zip(rows, triples, strict=True):
            category = errortypes.sentence_type(row.source, row.target)
            if category == "clean":
                self._clean += 1
                self._changed += row.prediction != row.source
                continue
            for name in ROWS:
                if errortypes.in_row(category, name):
                    self._triples[name][tuple(triple)] += 1

    def as_dict(self) -> dict[str, object]:
        """Return all breakdowns as one JSON object; each part has a bootstrap interval."""
        rate = self._changed / self._clean if self._clean else None
        return {
            "measure": self._scorer.headline,
            "category": self._by_category(),
            "clean": {
                "sentences": self._clean,
                "changed": self._changed,
                "over_correction_rate": rate,
            },
        }

    def _by_category(self) -> dict[str, object]:
        table: dict[str, object] = {}
        for name, triples in self._triples.items():
            if not triples:
                continue
            kinds = np.array(sorted(triples), dtype=np.int64)
            times = np.array([triples[tuple(one)] for one in kinds.tolist()], dtype=np.int64)
            tp, predicted, gold = (times @ kinds).tolist()
            interval = interval_of(kinds, times, beta=self._scorer.beta)
            table[name] = {
                "sentences": int(times.sum()),
                "tp": tp,
                "predicted": predicted,
                "gold": gold,
                # The sentences of a part all have errors, so precision is the share of changed
                # sentences that were corrected.
                "p": tp / predicted if predicted else None,
                "r": tp / gold if gold else None,
                "f": interval.value if gold else None,
                "low": interval.low,
                "high": interval.high,
            }
        return table


def traditional(rows: Sequence[Row]) -> int:
    """Return how many predictions add traditional characters that source and target lack."""
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
