"""C-LLM's scores: predictions are projected onto the source's length, then scored by CSCD-NS.

The projection keeps ChERRANT's S edits of equal length, or difflib's replacements of equal length
whose source is Chinese throughout, and drops every other change of the prediction.
`…_if_len_differs` projects only predictions whose length differs from their source's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from cecbench.cherrant.costs import Dictionaries, characters, opencc_version, simplify
from cecbench.cherrant.edits import annotate
from cecbench.metrics.base import Options
from cecbench.metrics.cscd import Cscd
from cecbench.metrics.rows import IntArray, Row
from cecdata.common.errors import UsageError

#: the first is the default
PROJECTIONS = ("cherrant", "difflib", "cherrant_if_len_differs", "difflib_if_len_differs")
LEAD_IN = "纠错后的句子："
Projector = Callable[[Sequence[Row], Dictionaries], list[str]]


def project_cherrant(rows: Sequence[Row], dictionaries: Dictionaries) -> list[str]:
    """Return the sources with ChERRANT's S edits of equal length applied.

    As published: the text up to 纠错后的句子： is cut off first; of several cheapest alignments
    only the first counts; and the edits' offsets count characters without whitespace but are
    applied to the source with its whitespace, so edits after a space land one character early.
    """
    answers = simplify([characters(_after_lead_in(row.prediction)) for row in rows])
    return [
        _project_edits(row.source, answer, dictionaries)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _after_lead_in(answer: str) -> str:
    return answer.partition(LEAD_IN)[2] if LEAD_IN in answer else answer


def _project_edits(source: str, answer: str, dictionaries: Dictionaries) -> str:
    projected = list(source)
    readings = annotate(characters(source), answer, dictionaries).readings
    for edit in readings[0] if readings else ():
        if edit.kind == "S" and len(edit.text) == edit.end - edit.start:
            projected[edit.start : edit.end] = edit.text
    return "".join(projected)


def project_difflib(rows: Sequence[Row], _: Dictionaries) -> list[str]:
    """Return the sources with difflib's replacements of equal length applied.

    >>> project_difflib([Row("1", "他己经来", "他已经来", "他已经来了")], Dictionaries())
    ['他已经来']
    """
    return [_project_replacements(row.source, row.prediction) for row in rows]


def _project_replacements(source: str, answer: str) -> str:
    if source == answer:
        return source
    projected = list(source)
    for tag, start, end, a_start, a_end in SequenceMatcher(None, source, answer).get_opcodes():
        fits = tag == "replace" and end - start == a_end - a_start
        if fits and all(map(_is_chinese, source[start:end])):
            projected[start:end] = answer[a_start:a_end]
    return "".join(projected)


def _is_chinese(character: str) -> bool:
    """Return whether C-LLM's script takes a character for Chinese: fewer than ChERRANT does."""
    return "\u4e00" <= character <= "\u9fa5"


class Cllm(Cscd):
    """C-LLM's scorer with one of its projections."""

    name = "cllm"
    policies = ("project", "strict", "revert", "drop")
    takes = ("projection",)
    fallback = "project"

    def __init__(self, options: Options | None = None) -> None:
        """Raise UsageError for an unknown projection."""
        super().__init__(options)
        projection = self.options.projection or PROJECTIONS[0]
        if projection not in PROJECTIONS:
            known = ", ".join(PROJECTIONS)
            raise UsageError(f"unknown projection {projection!r}; available: {known}")
        self.scans = False
        self._all_rows = not projection.endswith("_if_len_differs")
        self._project: Projector = project_difflib
        self.normalisation = f"projection:{projection}"
        self.details = {"projection": projection}
        if projection.startswith("cherrant"):
            dictionaries = self.options.dictionaries
            self._project = project_cherrant
            self.normalisation += f";costs:{dictionaries.name}"
            self.details |= {"dictionaries": dictionaries.name, **dictionaries.details}
            self.details["opencc"] = opencc_version()

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the CSCD-NS counts of the projected predictions."""
        projected = list(rows)
        picked = [
            index
            for index, row in enumerate(rows)
            if self._all_rows or len(row.prediction) != len(row.source)
        ]
        texts = self._project([rows[index] for index in picked], self.options.dictionaries)
        for index, text in zip(picked, texts, strict=True):
            projected[index] = rows[index]._replace(prediction=text)
        return super().count(projected)

    def stops(self, rows: Sequence[Row]) -> bool:
        """Return whether a target's length differs from its source's, or a prediction is empty."""
        return any(len(s) != len(t) or not p.strip() for _, s, t, p in rows)
