"""★ The main path: benchmark → system → answers → counts → score.

Blocks of rows pass through it; no row is kept in memory, and each answer is recorded in a journal,
so that a resumed run asks for none of them again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from cecbench import scorers
from cecbench.benchmarks.locate import Dataset, load, sample
from cecbench.benchmarks.readers import Example
from cecbench.breakdown import Breakdown, traditional
from cecbench.curve import CurveSums
from cecbench.metrics.base import Scorer
from cecbench.metrics.rows import Row
from cecbench.resampling import interval_of
from cecbench.results import FORMAT, PREDICTIONS, SCORE, RunScore
from cecbench.scorers import Tally
from cecbench.signature import package_version
from cecbench.systems.base import UNANSWERED, Answer, Context, SureEdit, System
from cecbench.systems.predictions import PredictionSystem
from cecbench.systems.table import check_spec, make_system
from cecdata.common.codec import sealed
from cecdata.common.durable import STATE, Journal, Workspace
from cecdata.common.durable.files import naming
from cecdata.common.errors import CecError

STEP = "answers"
UNRECORDED_BLOCK = 2048  # sentences at once, where asking again costs nothing
Progress = Callable[[int, int], None]
Blocks = Iterator[tuple[list[Row], list[Answer]]]


def no_progress(done: int, total: int) -> None:
    """Report nothing; the default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A system, a benchmark, and how the answers are scored."""

    benchmark: str
    system: str
    out: Path | None = None  # None: nothing is written
    data: Path | None = None
    scorer: str = "cscd"
    scoring: scorers.Options = field(default_factory=scorers.Options)
    allow_missing: bool = False
    overwrite: bool = False
    limit: int = 0  # rows of a sample; 0: all
    name: str = ""  # of the system in reports; "" for its own
    options: Mapping[str, object] = field(default_factory=dict)  # of the system, by name


def evaluate(settings: Settings, progress: Progress = no_progress) -> RunScore:
    """Run the system on the benchmark and return the object of score.json.

    A call with the same settings and `out` resumes an interrupted run and asks no recorded sentence
    again. Raises CecError for whatever stops the run, RefusedError where `out` holds another one.
    """
    scorer = scorers.find_scorer(settings.scorer, settings.scoring)  # before anything costs time
    check_spec(settings.system)
    dataset = load(settings.benchmark, settings.data)
    out = settings.out
    context = Context(dataset.rows, out / STATE if out else None)
    system = make_system(settings.system, settings.options, context)
    name, rows = asked(dataset, settings.limit, system)
    fingerprint = {
        "version": package_version(),  # prompts and the extraction of answers depend on it
        "benchmark": name,
        "benchmark_sha256": dataset.sha256,
        "system": dict(system.identity),
    }
    sums = RunSums(scorer)
    with ExitStack() as stack:
        work = journal = None
        if out:
            stack.enter_context(naming(out / PREDICTIONS))
            reads = [settings.system.partition(":")[2], settings.benchmark, settings.data or ""]
            work = Workspace(out, fingerprint, overwrite=settings.overwrite, reads=reads)
            journal = stack.enter_context(work).journal
        missing = settings.allow_missing
        blocks = sums.taken(collect(system, rows, journal, progress, allow_missing=missing))
        written = work.write(PREDICTIONS, lambda path: write_rows(path, blocks)) if work else None
        for _ in blocks:  # what was not written
            pass
        values = sums.summary(dataset, name, system, settings.name)
        if work and written:
            work.write_bytes(SCORE, sealed({**values, "predictions_sha256": written.sha256}))
    return values


def write_rows(path: Path, blocks: Blocks) -> None:
    """Write the blocks' rows to a file as they come: a line of JSON each, with the raw answer."""
    with path.open("wb") as file:
        for rows, answers in blocks:
            records = (_record(row, answer) for row, answer in zip(rows, answers, strict=True))
            lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            data = "".join(lines).encode("utf-8")
            with naming(path):
                file.write(data)
                file.flush()  # a full disk raises here and not when the file is closed


def asked(dataset: Dataset, limit: int, system: System) -> tuple[str, tuple[Example, ...]]:
    """Return the benchmark's name, with how much of it is asked, and the rows that are asked."""
    rows = sample(dataset.rows, limit)
    parts = [f"sample of {len(rows)}"] if len(rows) < len(dataset.rows) else []
    if isinstance(system, PredictionSystem) and len(system.answered(rows)) < len(rows):
        rows = system.answered(rows)
        parts = [str(len(rows)), *parts]
    part = f"[{' of '.join([*parts, str(len(dataset.rows))])}]" if parts else ""
    return dataset.name + part, rows


def collect(
    system: System,
    rows: Sequence[Example],
    journal: Journal | None = None,
    progress: Progress = no_progress,
    *,
    allow_missing: bool = False,
) -> Iterator[tuple[Sequence[Example], list[Answer]]]:
    """Yield blocks of rows with their answers, in order; recorded answers are not asked for again.

    Raises CecError if rows have no answer after all retries, unless `allow_missing` is set; then
    their sources are scored. Answers of earlier blocks stay recorded.
    """
    block = system.block or UNRECORDED_BLOCK
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        kept = journal.get(STEP, _key(start, part)) if journal is not None else None
        stored = kept.facts["answers"] if kept else []
        assert isinstance(stored, list)  # as recorded below
        answers = [_recorded(fields) for fields in stored]
        # Rows that an earlier run left open with --allow-missing are asked again without it.
        if answers and (allow_missing or all(a.status != "failed" for a in answers)):
            yield part, answers
        else:
            answers = list(system.correct([row.source for row in part]))
            if len(answers) != len(part):
                raise CecError(
                    f"{system.name} gave {len(answers)} answers for {len(part)} sentences"
                )
            if not allow_missing:
                _refuse_missing(system, part, answers)
            if journal is not None and system.block:
                journal.record(STEP, _key(start, part), answers=[list(astuple(a)) for a in answers])
            yield part, answers
        progress(start + len(part), len(rows))


def _recorded(fields: Sequence[Any]) -> Answer:
    """Return an answer of its fields as the journal holds them."""
    answer = Answer(*fields)
    edits = None if answer.edits is None else tuple(SureEdit(*one) for one in answer.edits)
    return replace(answer, edits=edits)


def _key(start: int, part: Sequence[Example]) -> str:
    return f"{start}+{len(part)}:{part[0].id}"


def _refuse_missing(system: System, part: Sequence[Example], answers: Sequence[Answer]) -> None:
    pairs = zip(part, answers, strict=True)
    failed = [(row.id, answer.raw) for row, answer in pairs if answer.status == "failed"]
    if not failed:
        return
    reasons = ", ".join(f"{n} × {what}" for what, n in Counter(r for _, r in failed).most_common())
    raise CecError(
        f"{system.name}: {len(failed)} of {len(part)} sentences have no answer after all retries "
        f"({reasons}; first: {failed[0][0]}). The other answers are kept: the same command asks "
        "for these alone. --allow-missing scores them as unchanged, and counts them"
    )


class RunSums:
    """Sums over the rows taken so far, with their answers."""

    def __init__(self, scorer: Scorer) -> None:
        self._tally = Tally(scorer, triples=True)
        self._breakdown = Breakdown(scorer)
        self._curve = CurveSums(scorer)
        self._statuses: Counter[str] = Counter()
        self._traditional = 0
        self._sums: Counter[str] = Counter()
        self._seconds = 0.0

    def taken(self, blocks: Iterable[tuple[Sequence[Example], list[Answer]]]) -> Blocks:
        """Yield the blocks, rows with their predictions, and add each to the sums."""
        for examples, answers in blocks:
            pairs = zip(examples, answers, strict=True)
            rows = [Row(one.id, one.source, one.target, answer.text) for one, answer in pairs]
            self._take(rows, answers)
            yield rows, answers

    def _take(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        kept, counts = self._tally.take(rows)
        by_id = {row.id: row for row in rows}
        # A policy may replace an answer by its source; the breakdown counts the answer itself.
        self._breakdown.add([by_id[row.id] for row in kept], counts)
        self._curve.add(rows, answers)
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
            "unanswered_means": "scored as unchanged; an empty line of a predictions file as it is",
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
        **({} if answer.edits is None else {"edits": answer.edits}),
    }
