"""Edits of a pair of sentences, with ChERRANT's types M, R, S and W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cecbench.cherrant.align import align
from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.cherrant.merge import DELETE, INSERT, SUBSTITUTE, TRANSPOSE, merge

_KIND = {TRANSPOSE: "W", SUBSTITUTE: "S", INSERT: "M", DELETE: "R"}
NOT_ANNOTATABLE = "无法标注"
#: what a target may say instead of a sentence → the type of its only edit
_NO_EDIT = {"没有错误": "noop", NOT_ANNOTATABLE: "NA"}


class SpanEdit(NamedTuple):
    """source[start:end] becomes `text`; start = end = -1 for noop and NA. Half open."""

    start: int
    end: int
    kind: str
    text: str


NOOP = SpanEdit(-1, -1, "noop", "")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One pair: each distinct reading of its cheapest alignments as a list of edits.

    target: without whitespace. said: what stands in place of a sentence, such as 没有错误, or "".
    """

    target: str
    readings: tuple[tuple[SpanEdit, ...], ...]
    said: str = ""
    capped: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether it says that nothing is to be changed."""
        return self.said == "没有错误"

    @property
    def edits(self) -> tuple[SpanEdit, ...]:
        """All readings' edits, one after the other: an edit found in k of them stands k times."""
        return tuple(edit for reading in self.readings for edit in reading)


EMPTY = Annotation("", ())


def annotate(
    source: str, target: str, dictionaries: Dictionaries | None = None, *, first_only: bool = False
) -> Annotation:
    """Edits from source to target, both without whitespace and simplified as is wanted.

    An empty target has no reading at all, as in the published files.

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
    found = align(source, target, dictionaries or NO_DICTIONARIES, first_only=first_only)
    merged = {tuple(merge(path, source, target)): None for path in found.paths}
    readings = (tuple(_span(step, source, target) for step in steps) for steps in merged)
    return Annotation(target, tuple(readings), capped=found.capped)


def _span(step: tuple[int, int, int, int, int], source: str, target: str) -> SpanEdit:
    operation, start, end, t_start, t_end = step
    if operation == SUBSTITUTE:
        # A merged run may begin or end with characters that did not change.
        while start < end and t_start < t_end and source[start] == target[t_start]:
            start, t_start = start + 1, t_start + 1
        while start < end and t_start < t_end and source[end - 1] == target[t_end - 1]:
            end, t_end = end - 1, t_end - 1
    return SpanEdit(start, end, _KIND[operation], target[t_start:t_end])
