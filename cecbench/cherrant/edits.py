"""Edits of a pair of sentences, with ChERRANT's types M, R, S and W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cecbench.cherrant.align import align
from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.cherrant.merge import DELETE, INSERT, SUBSTITUTE, TRANSPOSE, merge

_KIND = {TRANSPOSE: "W", SUBSTITUTE: "S", INSERT: "M", DELETE: "R"}
NOT_ANNOTATABLE = "无法标注"
#: texts that a target may have instead of a sentence → the type of their only edit
_NO_EDIT = {"没有错误": "noop", NOT_ANNOTATABLE: "NA"}


class SpanEdit(NamedTuple):
    """source[start:end] becomes `text`; start and end are −1 for noop and NA."""

    start: int
    end: int
    kind: str
    text: str


NOOP = SpanEdit(-1, -1, "noop", "")


@dataclass(frozen=True, slots=True)
class Annotation:
    """The edits of a pair of sentences, once for each of its distinct cheapest alignments.

    target: without whitespace. said: the text instead of a sentence, such as 没有错误, or "".
    capped: whether some alignments were left out.
    """

    target: str
    readings: tuple[tuple[SpanEdit, ...], ...]
    said: str = ""
    capped: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the target says that there is no error."""
        return self.said == "没有错误"

    @property
    def edits(self) -> tuple[SpanEdit, ...]:
        """The edits of all readings; one that k readings have is there k times."""
        return tuple(edit for reading in self.readings for edit in reading)


EMPTY = Annotation("", ())


def annotate(
    source: str, target: str, dictionaries: Dictionaries | None = None, *, first_only: bool = False
) -> Annotation:
    """Return the edits from source to target, which have no whitespace.

    An empty target has no reading, as in the published files.

    >>> annotate("我门们走吧。", "我们走吧。").edits
    (SpanEdit(start=1, end=2, kind='R', text=''),)
    >>> annotate("做事应当实求事是。", "做事应当实事求是。").edits
    (SpanEdit(start=5, end=7, kind='W', text='事求'),)
    """
    if not target:
        return EMPTY
    if target in (source, "没有错误"):
        return Annotation(source, ((NOOP,),), "没有错误")
    if target in _NO_EDIT:
        return Annotation(target, ((NOOP._replace(kind=_NO_EDIT[target]),),), target)
    alignments = align(source, target, dictionaries or NO_DICTIONARIES, first_only=first_only)
    merged = {tuple(merge(path, source, target)): None for path in alignments.paths}
    readings = (tuple(_span(step, source, target) for step in steps) for steps in merged)
    return Annotation(target, tuple(readings), capped=alignments.capped)


def _span(step: tuple[int, int, int, int, int], source: str, target: str) -> SpanEdit:
    operation, start, end, t_start, t_end = step
    if operation == SUBSTITUTE:
        # A merged run may begin or end with characters that did not change.
        while start < end and t_start < t_end and source[start] == target[t_start]:
            start, t_start = start + 1, t_start + 1
        while start < end and t_start < t_end and source[end - 1] == target[t_end - 1]:
            end, t_end = end - 1, t_end - 1
    return SpanEdit(start, end, _KIND[operation], target[t_start:t_end])
