"""The sums of a run, block by block: its score, categories, statuses and usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cecbench.benchmarks.catalogue import Dataset
from cecbench.benchmarks.readers import Example
from cecbench.metrics.base import Metric
from cecbench.metrics.rows import IntArray, Row
from cecbench.resampling import Triples
from cecbench.results import FORMAT, RunScore
from cecbench.scorers import Tally
from cecbench.systems.base import UNANSWERED, Answer, System
from cecdata.hanzi import errortypes

Blocks = Iterator[tuple[list[Row], list[Answer]]]
CATEGORIES = tuple(name for name in errortypes.SENTENCE if name != "clean")


class RunSums:
    """Sums over the rows taken so far, with their answers."""

    def __init__(self, scorer: Metric) -> None:
        self._tally = Tally(scorer)
        self._breakdown = Breakdown(scorer)
        self._statuses: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._seconds = 0.0

    def take_blocks(self, blocks: Iterable[tuple[Sequence[Example], list[Answer]]]) -> Blocks:
        """Yield the blocks, rows with their predictions, and add each to the sums."""
        for examples, answers in blocks:
            pairs = zip(examples, answers, strict=True)
            rows = [Row(row.id, row.source, row.target, answer.text) for row, answer in pairs]
            self._add_rows(rows, answers)
            yield rows, answers

    def _add_rows(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        scored_rows, counts = self._tally.add_block(rows)
        by_id = {row.id: row for row in rows}
        # Of another length it may count as its source; the breakdown counts the answer itself.
        self._breakdown.add([by_id[row.id] for row in scored_rows], counts)
        self._statuses.update(answer.status for answer in answers)
        self._sums["rows"] += len(rows)
        self._sums["characters"] += sum(len(row.source) for row in rows)
        self._sums["tokens_in"] += sum(answer.tokens_in for answer in answers)
        self._sums["tokens_out"] += sum(answer.tokens_out for answer in answers)
        self._seconds += sum(answer.seconds for answer in answers)

    def make_score(self, dataset: Dataset, part: str, system: System, called: str) -> RunScore:
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
        return {
            **tally.values(signature),
            **({"interval": interval.as_dict(headline)} if interval else {}),
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
            "retried": dict(getattr(system, "troubles", {})),  # requests of this process
            "usage": self._sum_usage(),
            "breakdown": self._breakdown.as_dict(),
        }

    def _sum_usage(self) -> dict[str, object]:
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
            category = errortypes.name_sentence_type(row.source, row.target)
            if category == "clean":
                self._clean += 1
                self._changed += row.prediction != row.source
                continue
            for name in CATEGORIES:
                if errortypes.counts_in_row(category, name):
                    self._triples[name].add([triple])

    def as_dict(self) -> dict[str, object]:
        """Return the scores by category of error, and the share of clean sentences changed."""
        rate = self._changed / self._clean if self._clean else None
        clean = {"sentences": self._clean, "changed": self._changed, "over_correction_rate": rate}
        categories = self._score_categories()
        return {"measure": self._scorer.headline, "category": categories, "clean": clean}

    def _score_categories(self) -> dict[str, object]:
        """Return counts, P, R and F of each category that has sentences, as fractions."""
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
