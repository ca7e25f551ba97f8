"""Misjudged sentences as aligned pictures: what stays once, what differs three times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cecbench.errortypes import sentence_type
from cecbench.metrics.rows import Row
from cecbench.results import Run
from cecdata.hanzi.edits import align

#: judgement → what it says
JUDGEMENTS = {
    "missed": "an error was left as it was",
    "wrong": "a sentence with errors was changed, but not into the reference",
    "over-corrected": "a clean sentence was changed",
}
Piece = str | tuple[str, str, str]  # what stays, or (source, prediction, reference)


@dataclass(frozen=True, slots=True)
class Case:
    """One misjudged sentence; `pieces` spell source, prediction and reference side by side."""

    benchmark: str
    system: str
    id: str
    judgement: str
    category: str
    status: str
    pieces: tuple[Piece, ...]


def judgement(row: Row) -> str | None:
    """What went wrong, or None where the prediction is the reference."""
    if row.prediction == row.target:
        return None
    if row.source == row.target:
        return "over-corrected"
    return "missed" if row.prediction == row.source else "wrong"


def cases(run: Run, most: int) -> tuple[list[Case], int]:
    """The first `most` misjudged sentences of a run, and how many there are in all."""
    found: list[Case] = []
    total = 0
    for row, status in zip(run.rows, run.statuses, strict=True):
        why = judgement(row)
        if why is None:
            continue
        total += 1
        if len(found) < most:
            kind = sentence_type(row.source, row.target).category
            pieces = aligned(row.source, row.prediction, row.target)
            found.append(Case(run.benchmark, run.system, row.id, why, kind, status, pieces))
    return found, total


def aligned(source: str, prediction: str, reference: str) -> tuple[Piece, ...]:
    """The three texts cut where any of them differs.

    >>> aligned("他己经来", "他以经来", "他已经来")
    ('他', ('己', '以', '已'), '经来')
    >>> aligned("好", "很好", "好")
    (('', '很', ''), '好')
    """
    pieces: list[Piece] = []
    at = 0
    for start, end, predicted, right in _merged(source, prediction, reference):
        if start > at:
            pieces.append(source[at:start])
        pieces.append((source[start:end], predicted, right))
        at = end
    if at < len(source):
        pieces.append(source[at:])
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class _Change:
    """source[start:end] reads `text` in the other sentence."""

    start: int
    end: int
    text: str


def _changes(source: str, other: str) -> list[_Change]:
    # align() speaks of (perturbed, clean): here the source is what the offsets are of.
    return [_Change(edit.start, edit.end, edit.source) for edit in align(other, source)]


def _merged(source: str, prediction: str, reference: str) -> Iterator[tuple[int, int, str, str]]:
    """Spans where either other text differs, with both texts there.

    Spans that touch are made one: an insertion between two would else belong to both.
    """
    sides = (_changes(source, prediction), _changes(source, reference))
    spans = sorted({(change.start, change.end) for side in sides for change in side})
    groups: list[tuple[int, int]] = []
    for start, end in spans:
        if groups and start <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(end, groups[-1][1]))
        else:
            groups.append((start, end))
    for start, end in groups:
        predicted, right = (_text(source, side, start, end) for side in sides)
        yield start, end, predicted, right


def _text(source: str, changes: Sequence[_Change], start: int, end: int) -> str:
    text, at = "", start
    for change in changes:
        if start <= change.start and change.end <= end:
            text += source[at : change.start] + change.text
            at = change.end
    return text + source[at:end]
