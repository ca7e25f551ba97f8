"""Misjudged sentences: source, prediction and reference aligned, so that differences show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cecbench.errortypes import sentence_type
from cecbench.metrics.rows import Row
from cecbench.results import Run
from cecdata.hanzi.edits import align

#: judgement → its meaning
JUDGEMENTS = {
    "missed": "an error was left as it was",
    "wrong": "a sentence with errors was changed, but not into the reference",
    "over-corrected": "a clean sentence was changed",
}
Piece = str | tuple[str, str, str]  # equal text, or (source, prediction, reference)


@dataclass(frozen=True, slots=True)
class Case:
    """One misjudged sentence; its `pieces` give source, prediction and reference."""

    benchmark: str
    system: str
    id: str
    judgement: str
    category: str
    status: str
    pieces: tuple[Piece, ...]


def judgement(row: Row) -> str | None:
    """Return what is wrong with a prediction; None if it equals the reference."""
    if row.prediction == row.target:
        return None
    if row.source == row.target:
        return "over-corrected"
    return "missed" if row.prediction == row.source else "wrong"


def cases(run: Run, most: int) -> tuple[list[Case], int]:
    """Return the first `most` misjudged sentences of a run, and the number of all."""
    listed: list[Case] = []
    total = 0
    for row, status in zip(run.rows, run.statuses, strict=True):
        why = judgement(row)
        if why is None:
            continue
        total += 1
        if len(listed) < most:
            kind = sentence_type(row.source, row.target).category
            pieces = aligned(row.source, row.prediction, row.target)
            listed.append(Case(run.benchmark, run.system, row.id, why, kind, status, pieces))
    return listed, total


def aligned(source: str, prediction: str, reference: str) -> tuple[Piece, ...]:
    """Return the three texts, cut where one of them differs.

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
    # align() takes (perturbed, clean); its offsets are those of the second, here the source.
    return [_Change(edit.start, edit.end, edit.source) for edit in align(other, source)]


def _merged(source: str, prediction: str, reference: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the spans of the source where another text differs, with both other texts there.

    Spans that touch are merged, because an insertion between them would belong to both.
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
