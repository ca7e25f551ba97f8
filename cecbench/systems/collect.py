"""Asking a system for every row once: answers go to a journal, a killed run asks for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple

from cecbench.benchmarks.row import Row
from cecbench.systems.answer import UNANSWERED, Answer, System
from cecdata.durable import Journal
from cecdata.errors import CecError

STEP = "answers"
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """The default: says nothing."""


def collect(
    system: System,
    rows: Sequence[Row],
    journal: Journal | None = None,
    *,
    allow_missing: bool = False,
    progress: Progress = no_progress,
) -> list[Answer]:
    """One answer a row, in the rows' order; blocks that the journal holds are not asked again.

    Raises CecError when rows have no answer after all retries, unless `allow_missing` scores
    their sources; what was answered before stays recorded.
    """
    block = system.block or len(rows)
    answers: list[Answer] = []
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        kept = journal.get(STEP, _key(start, part)) if journal is not None else None
        if kept is not None:
            answers += _decoded(kept.facts["answers"])
        else:
            found = list(system.correct([row.source for row in part]))
            if len(found) != len(part):
                raise CecError(f"{system.name} gave {len(found)} answers for {len(part)} sentences")
            _refuse_missing(system, part, found, allow_missing=allow_missing)
            if journal is not None and system.block:
                journal.record(STEP, _key(start, part), answers=[list(astuple(a)) for a in found])
            answers += found
        progress(len(answers), len(rows))
    return answers


def _key(start: int, part: Sequence[Row]) -> str:
    return f"{start}+{len(part)}:{part[0].id}"


def _decoded(stored: object) -> list[Answer]:
    assert isinstance(stored, list)
    return [Answer(*fields) for fields in stored]


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


def statuses(answers: Sequence[Answer]) -> dict[str, int]:
    """Status → how many answers, the most frequent first.

    >>> statuses([Answer("好", "好"), Answer("", "", "empty"), Answer("好", "好")])
    {'ok': 2, 'empty': 1}
    """
    return dict(Counter(answer.status for answer in answers).most_common())


def unanswered(answers: Sequence[Answer]) -> int:
    """How many answers hold no correction that could be read."""
    return sum(answer.status in UNANSWERED for answer in answers)
