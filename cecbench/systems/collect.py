"""Asking a system for every row once: answers go to a journal, a killed run asks for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple

from cecbench.benchmarks.row import Dataset, Row, sample
from cecbench.systems.answer import Answer, System
from cecbench.systems.predictions import PredictionSystem
from cecdata.common.durable import Journal
from cecdata.common.errors import CecError, VerificationError

STEP = "answers"
UNRECORDED_BLOCK = 2048  # sentences at once, for a system that costs nothing to ask again
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """The default: says nothing."""


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
    """Blocks of rows with an answer each, in order; what the journal holds is not asked again.

    Raises CecError when rows have no answer after all retries, unless `allow_missing` scores
    their sources; what was answered before stays recorded.
    """
    block = system.block or UNRECORDED_BLOCK
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        kept = journal.get(STEP, _key(start, part)) if journal is not None else None
        answers = _decoded(kept.facts["answers"]) if kept is not None else []
        # What an earlier run was allowed to leave open is asked again where this one may not.
        if answers and (allow_missing or all(a.status != "failed" for a in answers)):
            yield part, answers
        else:
            found = list(system.correct([row.source for row in part]))
            if len(found) != len(part):
                raise CecError(f"{system.name} gave {len(found)} answers for {len(part)} sentences")
            _refuse_missing(system, part, found, allow_missing=allow_missing)
            if journal is not None and system.block:
                journal.record(STEP, _key(start, part), answers=[list(astuple(a)) for a in found])
            yield part, found
        progress(start + len(part), len(rows))


def _key(start: int, part: Sequence[Row]) -> str:
    return f"{start}+{len(part)}:{part[0].id}"


def _decoded(stored: object) -> list[Answer]:
    assert isinstance(stored, list)
    shape = [type(value) for value in astuple(_ANY)]
    for fields in stored:
        if not isinstance(fields, list) or [type(value) for value in fields] != shape:
            raise VerificationError(
                f"an answer that an earlier run recorded cannot be read ({fields!r:.80}): another "
                "version wrote it; --overwrite asks for all rows again"
            )
    return [Answer(*fields) for fields in stored]


_ANY = Answer("", "", "", 0, 0, 0.0)  # for the types of its fields


def _refuse_missing(
    system: System, part: Sequence[Row], found: Sequence[Answer], *, allow_missing: bool
) -> None:
    failed = [(row.id, answer.raw) for row, answer in zip(part, found, strict=True)
              if answer.status == "failed"]  # fmt: skip
    if not failed or allow_missing:
        return
    reasons = ", ".join(f"{n} × {what}" for what, n in Counter(r for _, r in failed).most_common())
    raise CecError(
        f"{system.name}: {len(failed)} of {len(part)} sentences have no answer after all retries "
        f"({reasons}; first: {failed[0][0]}). What was answered is kept: the same command asks "
        "for these alone. --allow-missing scores them as left unchanged, and counts them"
    )
