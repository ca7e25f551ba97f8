"""Answers of a system, asked once for each row and recorded in a journal for a resumed run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple

from cecbench.benchmarks.row import Dataset, Row, sample
from cecbench.systems.answer import Answer, System
from cecbench.systems.predictions import PredictionSystem
from cecdata.common.durable import Journal
from cecdata.common.errors import CecError

STEP = "answers"
UNRECORDED_BLOCK = 2048  # sentences at once, where asking again costs nothing
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Report nothing; the default."""


def asked(dataset: Dataset, limit: int, system: System) -> tuple[str, tuple[Row, ...]]:
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
    rows: Sequence[Row],
    journal: Journal | None = None,
    progress: Progress = no_progress,
    *,
    allow_missing: bool = False,
) -> Iterator[tuple[Sequence[Row], list[Answer]]]:
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
        answers = [Answer(*fields) for fields in stored]
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


def _key(start: int, part: Sequence[Row]) -> str:
    return f"{start}+{len(part)}:{part[0].id}"


def _refuse_missing(system: System, part: Sequence[Row], answers: Sequence[Answer]) -> None:
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
