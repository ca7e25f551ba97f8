"""The sums of a run, block by block: its score, categories, curve, statuses and usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecbench.benchmarks.catalogue import Dataset
from cecbench.benchmarks.readers import Example
from cecbench.metrics.base import Metric, select_rows
from cecbench.metrics.rows import IntArray, Row
from cecbench.resampling import Triples, f_statistic
from cecbench.results import FORMAT, RunScore
from cecbench.scorers import Tally
from cecbench.systems.base import UNANSWERED, Answer, SureEdit, System, apply_edits
from cecdata.hanzi import errortypes

Blocks = Iterator[tuple[list[Row], list[Answer]]]
CATEGORIES = tuple(name for name in errortypes.SENTENCE if name != "clean")
REACH = 0.1  # the area of a curve is over shares of clean sentences changed from 0 to this one
SHARES = (0.005, 0.01, 0.02, 0.05, REACH)
MOST_STEPS = 200  # that are kept of a curve
_FIELDS = 5  # tp, predicted, gold; clean sentences, and those that were changed


class RunSums:
    """Sums over the rows taken so far, with their answers."""

    def __init__(self, scorer: Metric) -> None:
        self._tally = Tally(scorer)
        self._breakdown = Breakdown(scorer)
        self._curve = CurveSums(scorer)
        self._statuses: Counter[str] = Counter()
        self._traditional = 0
        self._sums: Counter[str] = Counter()
        self._seconds = 0.0

    def take_blocks(self, blocks: Iterable[tuple[Sequence[Example], list[Answer]]]) -> Blocks:
        """Yield the blocks, rows with their predictions, and add each to the sums."""
        for examples, answers in blocks:
            pairs = zip(examples, answers, strict=True)
            rows = [Row(row.id, row.source, row.target, answer.text) for row, answer in pairs]
            self._take(rows, answers)
            yield rows, answers

    def _take(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        scored_rows, counts = self._tally.take(rows)
        by_id = {row.id: row for row in rows}
        # Of another length it may count as its source; the breakdown counts the answer itself.
        self._breakdown.add([by_id[row.id] for row in scored_rows], counts)
        self._curve.add(rows, answers)
        self._statuses.update(answer.status for answer in answers)
        self._traditional += traditional(rows)
        self._sums["rows"] += len(rows)
        self._sums["characters"] += sum(len(row.source) for row in rows)
        self._sums["tokens_in"] += sum(answer.tokens_in for answer in answers)
        self._sums["tokens_out"] += sum(answer.tokens_out for answer in answers)
        self._seconds += sum(answer.seconds for answer in answers)

    def summary(self, dataset: Dataset, part: str, system: System, called: str) -> RunScore:
        """Return the object of score.json: the scorer's keys, then what explains them.

        part: how much of the benchmark was scored. called: the system's name in reports.
        """
        tally, headline = self._tally, self._tally.scorer.headline
        interval = None
        if tally.kept and headline in tally.scorer.ratios:
            interval = tally.triples.interval(tally.scorer.beta)
        name = (dataset.signed or dataset.name) + part
        signature = tally.signature(name, interval.signature if interval else "none")
        statuses = dict(self._statuses.most_common())
        curve = self._curve.as_dict()
        return {
            **tally.values(signature),
            **({"interval": interval.as_dict(headline)} if interval else {}),
            **({"curve": curve} if curve else {}),
            "format": FORMAT,
            "headline": headline,
            "benchmark": dataset.name,
            "benchmark_file_sha256": dataset.sha256,
            "benchmark_rows": len(dataset.rows),
            "benchmark_licence": dataset.licence,
            "benchmark_notes": list(dataset.notes),
            "synthetic": dataset.synthetic,
            "system": called or system.name,
            "system_identity": dict(system.identity),
            "answers": statuses,
            "unanswered": sum(statuses.get(status, 0) for status in UNANSWERED),
            "unanswered_means": "scored as unchanged; in a predictions file, as an empty answer",
            "traditional_predictions": self._traditional,
            "retried": dict(getattr(system, "troubles", {})),  # requests of this process
            "usage": self._usage(),
            "breakdown": self._breakdown.as_dict(),
        }

    def _usage(self) -> dict[str, object]:
        """Return tokens and seconds; speeds are over the sum of the rows' seconds."""
        sums, seconds = self._sums, self._seconds
        usage: dict[str, object] = {
            "tokens_in": sums["tokens_in"],
            "tokens_out": sums["tokens_out"],
            "seconds": round(seconds, 3),
        }
        if seconds > 0:
            usage["sentences_per_s"] = round(sums["rows"] / seconds, 2)
            usage["characters_per_s"] = round(sums["characters"] / seconds, 1)
            usage["tokens_out_per_s"] = round(sums["tokens_out"] / seconds, 1)
        return usage


class Breakdown:
    """The count of each triple (tp, predicted, gold) in each category of sentences.

    Every number of a category comes from the pooled counts of its sentences; scores are never
    averaged.
    """

    def __init__(self, scorer: Metric) -> None:
        self._scorer = scorer
        self._triples = {name: Triples() for name in CATEGORIES}
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
            for name in CATEGORIES:
                if errortypes.in_row(category, name):
                    self._triples[name].add([triple])

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
            tp, predicted, gold = triples.sums
            interval = triples.interval(self._scorer.beta)
            table[name] = {
                "sentences": len(triples),
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


@cache
def _traditional_characters() -> frozenset[str]:
    from cecdata.hanzi.characters import is_standard, standard_characters, traditional_forms

    forms = (form for c in standard_characters() for form in traditional_forms(c))
    return frozenset(form for form in forms if not is_standard(form))


class CurveSums:
    """The counts of each answer at its own thresholds, of a system that gives confidences.

    At a threshold only the edits count whose confidence is at least as high. An answer changes at
    its own confidences alone, so that the counts of its steps give the sums at every threshold.
    """

    def __init__(self, scorer: Metric) -> None:
        self._scorer = scorer
        stops = scorer.unequal_length == "strict" and scorer.stop_error
        self._unequal_length = scorer.fallback if stops else scorer.unequal_length
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
                [float(ordered[step]), float(f[step]), float(share[step])] for step in at.tolist()
            ],
        }

    def _counts(self, variants: Sequence[Row]) -> IntArray:
        """Return the counts of each row, zeros where it is left out."""
        counts = np.zeros((len(variants), _FIELDS), dtype=np.int64)
        scored_rows = select_rows(variants, self._unequal_length)
        if scored_rows:
            places = [int(row.id) for row in scored_rows]
            headline = list(self._scorer.headline_columns)
            counts[places, :3] = self._scorer.count(scored_rows)[:, headline]
        counts[:, 3] = [row.source == row.target for row in variants]
        counts[:, 4] = [row.source == row.target != row.prediction for row in variants]
        return counts


def _steps(source: str, edits: Sequence[SureEdit]) -> Iterator[tuple[float, str]]:
    """Yield the texts of an answer, each with the highest threshold at which it is given."""
    yield np.inf, source
    for threshold in sorted({edit.confidence for edit in edits}, reverse=True):
        yield threshold, apply_edits(source, [e for e in edits if e.confidence >= threshold])
