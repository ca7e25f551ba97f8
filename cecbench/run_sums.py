"""The contents of score.json, summed over blocks of rows; no row is kept in memory."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from cecbench.benchmarks.row import Dataset
from cecbench.breakdown import Breakdown, traditional
from cecbench.metrics.base import Scorer
from cecbench.metrics.rows import Row
from cecbench.resampling import interval_of
from cecbench.score_shape import FORMAT, RunScore
from cecbench.systems.answer import UNANSWERED, Answer, System
from cecbench.tally import Tally
from cecdata.common.durable.files import naming


class RunSums:
    """Sums over the rows taken so far, with their answers."""

    def __init__(self, scorer: Scorer, policy: str | None) -> None:
        self._tally = Tally(scorer, policy, triples=True)
        self._breakdown = Breakdown(scorer)
        self._statuses: Counter[str] = Counter()
        self._traditional = 0
        self._sums: Counter[str] = Counter()
        self._seconds = 0.0

    def take(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Add rows, whose predictions are the answers' texts."""
        kept, counts = self._tally.take(rows)
        by_id = {row.id: row for row in rows}
        # A policy may replace an answer by its source; the breakdown counts the answer itself.
        self._breakdown.add([by_id[row.id] for row in kept], counts)
        self._statuses.update(answer.status for answer in answers)
        self._traditional += traditional(rows)
        self._sums["rows"] += len(rows)
        self._sums["characters"] += sum(len(row.source) for row in rows)
        self._sums["tokens_in"] += sum(answer.tokens_in for answer in answers)
        self._sums["tokens_out"] += sum(answer.tokens_out for answer in answers)
        self._seconds += sum(answer.seconds for answer in answers)

    def summary(self, dataset: Dataset, name: str, system: System, called: str) -> RunScore:
        """Return the object of score.json: the scorer's keys, then what explains them.

        name: the benchmark's, with the part of it that was scored. called: the system's in reports.
        """
        tally, headline = self._tally, self._tally.scorer.headline
        interval = None
        if tally.kept and headline in tally.scorer.ratios:
            interval = interval_of(*tally.triples(), beta=tally.scorer.beta)
        signature = tally.signature(name, interval.signature if interval else "none")
        statuses = dict(self._statuses.most_common())
        values = {
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
            "unanswered_means": "scored as unchanged; an empty line of a predictions file as it is",
            "traditional_predictions": self._traditional,
            "retried": dict(getattr(system, "troubles", {})),  # requests of this process
            "usage": self._usage(system),
            "breakdown": self._breakdown.as_dict(),
        }
        return cast("RunScore", values)

    def _usage(self, system: System) -> dict[str, object]:
        """Return tokens, seconds and cost; speeds are over the sum of the rows' seconds."""
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
        price = getattr(system, "cost", None)
        cost = price(sums["tokens_in"], sums["tokens_out"]) if price else None
        return usage if cost is None else {**usage, "cost": round(cost, 6)}


class Lines:
    """Two files of a run, written block by block: each row with its raw answer as JSON, and the
    table of four columns that `cecbench score` reads.
    """

    def __init__(self, folder: Path) -> None:
        self.records = folder / "records.jsonl"
        self.table = folder / "table.tsv"
        folder.mkdir(parents=True, exist_ok=True)
        self._open = tuple(path.open("wb") for path in (self.records, self.table))
        self._sums = (hashlib.sha256(), hashlib.sha256())

    def add(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Append the lines of a block."""
        pairs = list(zip(rows, answers, strict=True))
        records = "".join(json.dumps(_record(*pair), ensure_ascii=False) + "\n" for pair in pairs)
        table = "".join("\t".join(map(_flat, row)) + "\n" for row in rows)
        paths, texts = (self.records, self.table), (records, table)
        for path, file, total, text in zip(paths, self._open, self._sums, texts, strict=True):
            data = text.encode("utf-8")
            total.update(data)
            with naming(path, wanted=len(data)):
                file.write(data)
                file.flush()  # a full disk raises here and not when the file is closed

    @property
    def sha256(self) -> tuple[str, str]:
        """The digests (hex) of the records and of the table as they were written, not read back."""
        records, table = (total.hexdigest() for total in self._sums)
        return records, table

    def close(self) -> None:
        """Close the files, so that they can be read."""
        for file in self._open:
            file.close()

    def __enter__(self) -> Lines:  # noqa: PYI034 - Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for path in (self.records, self.table):
            path.unlink(missing_ok=True)


def _record(row: Row, answer: Answer) -> Mapping[str, object]:
    return {
        "id": row.id,
        "source": row.source,
        "reference": row.target,
        "prediction": row.prediction,
        "status": answer.status,
        "raw": answer.raw if answer.raw != answer.text else None,
        "tokens": [answer.tokens_in, answer.tokens_out],
        "seconds": round(answer.seconds, 6),
    }


def _flat(cell: str) -> str:
    """Return the cell of a table, in which a tab or line end becomes a space."""
    return cell.replace("\t", " ").replace("\r", " ").replace("\n", " ")
