"""What a run leaves behind: predictions, the score with everything that explains it, and reading
both again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cecbench.benchmarks.row import Dataset
from cecbench.breakdown import breakdown, traditional
from cecbench.metrics.rows import Row
from cecbench.scorers import Options, Score, score
from cecbench.significance import bootstrap, statistic_of
from cecbench.systems.answer import Answer, System
from cecbench.systems.collect import statuses, unanswered
from cecbench.systems.options import SystemOptions
from cecdata.errors import InputError

SCORE = "score.json"
PREDICTIONS = "predictions.jsonl"
TABLE = "predictions.tsv"
FORMAT = 1  # of score.json


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run, as read back from its folder; `rows` are what was scored."""

    folder: Path
    values: Mapping[str, object]
    rows: tuple[Row, ...]
    statuses: tuple[str, ...]

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.values["benchmark"])

    @property
    def system(self) -> str:
        """The system's name."""
        return str(self.values["system"])


def summary(
    dataset: Dataset,
    system: System,
    rows: Sequence[Row],
    answers: Sequence[Answer],
    scored: Score,
    options: SystemOptions,
) -> dict[str, object]:
    """The object of score.json: the scorer's keys, then what a reader needs to judge them."""
    values: dict[str, object] = dict(scored.values)
    headline = scored.scorer.headline
    if scored.ids and headline in scored.scorer.ratios:
        interval = bootstrap(scored.counts, statistic_of(scored))
        signature = replace(scored.signature, bootstrap=interval.signature)
        values["signature"] = signature.short()
        values["signature.bootstrap"] = interval.signature
        values["interval"] = {
            "measure": headline,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
            "level": interval.level,
            "unit": "fraction",
        }
    return {
        **values,
        "format": FORMAT,
        "headline": headline,
        "benchmark": dataset.name,
        "benchmark_file_sha256": dataset.sha256,
        "benchmark_rows": len(dataset.rows),
        "benchmark_licence": dataset.licence,
        "benchmark_notes": list(dataset.notes),
        "synthetic": dataset.synthetic,
        "system": options.name or system.name,
        "system_identity": dict(system.identity),
        "answers": statuses(answers),
        "unanswered": unanswered(answers),
        "unanswered_means": "scored as left unchanged (an empty line of a predictions file: as is)",
        "traditional_predictions": traditional(rows),
        "usage": usage(rows, answers, options),
        "breakdown": breakdown(scored, rows),
    }


def usage(
    rows: Sequence[Row], answers: Sequence[Answer], options: SystemOptions
) -> dict[str, object]:
    """Tokens, seconds and money; speeds are over the time spent on the rows, not the wall."""
    tokens_in = sum(answer.tokens_in for answer in answers)
    tokens_out = sum(answer.tokens_out for answer in answers)
    seconds = sum(answer.seconds for answer in answers)
    characters = sum(len(row.source) for row in rows)
    found: dict[str, object] = {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "seconds": round(seconds, 3),
    }
    if seconds > 0:
        found["sentences_per_s"] = round(len(rows) / seconds, 2)
        found["characters_per_s"] = round(characters / seconds, 1)
        found["tokens_out_per_s"] = round(tokens_out / seconds, 1)
    if options.price_in or options.price_out:
        cost = (tokens_in * options.price_in + tokens_out * options.price_out) / 1e6
        found["cost"] = round(cost, 6)
    return found


def files_of(
    rows: Sequence[Row], answers: Sequence[Answer], values: Mapping[str, object]
) -> dict[str, str]:
    """File name → text of everything that a run writes.

    The table is what `cecbench score` takes; a tab or line end inside a prediction is a space
    there, and only there.
    """
    lines, table = [], []
    for row, answer in zip(rows, answers, strict=True):
        record = {
            "id": row.id,
            "source": row.source,
            "reference": row.target,
            "prediction": row.prediction,
            "status": answer.status,
            "raw": answer.raw if answer.raw != answer.text else None,
            "tokens": [answer.tokens_in, answer.tokens_out],
            "seconds": round(answer.seconds, 6),
        }
        lines.append(json.dumps(record, ensure_ascii=False))
        flat = (row.id, row.source, row.target, row.prediction)
        table.append("\t".join(_flat(cell) for cell in flat))
    return {
        PREDICTIONS: "\n".join(lines) + "\n",
        TABLE: "\n".join(table) + "\n",
        SCORE: json.dumps(values, ensure_ascii=False, indent=1) + "\n",
    }


def read_values(path: Path) -> dict[str, object]:
    """A score.json, by its path or its folder; InputError where it is none."""
    file = path / SCORE if path.is_dir() else path
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): name a run's score") from None
    except ValueError as error:
        raise InputError(f"{file} is not JSON ({error})") from None
    if not isinstance(values, dict) or "signature" not in values or "scorer" not in values:
        raise InputError(f"{file} is not a score that `cecbench run` or `score --json` wrote")
    return values


def read_run(path: Path) -> Run:
    """A run with its rows; InputError where the predictions beside the score are missing."""
    values = read_values(path)
    folder = path if path.is_dir() else path.parent
    file = folder / PREDICTIONS
    if not file.is_file():
        raise InputError(f"{folder} has no {PREDICTIONS}: name a folder that `cecbench run` wrote")
    rows, marks = [], []
    for number, line in enumerate(file.read_text(encoding="utf-8").strip("\n").split("\n"), 1):
        try:
            r = json.loads(line)
            rows.append(Row(r["id"], r["source"], r["reference"], r["prediction"]))
            marks.append(str(r["status"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file}, line {number} is not a row of a run ({error})") from None
    return Run(folder, values, tuple(rows), tuple(marks))


def rescored(run: Run) -> Score:
    """The score of a run with its counts per sentence, made again from its rows."""
    values = run.values
    options = Options(projection=_text(values.get("projection")), mode=_text(values.get("mode")))
    name = str(values["signature.benchmark"]).rpartition("@")[0]
    return score(
        run.rows, str(values["scorer"]), _text(values["policy"]), options=options, benchmark=name
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _flat(cell: str) -> str:
    return cell.replace("\t", " ").replace("\r", " ").replace("\n", " ")
