"""CSCD-NS evaluation, and C-LLM's, which projects predictions onto the source's length first.

Sentence and character level, detection and correction. The rules are those of `nghuyong/cscd-ns`,
evaluation/evaluate.py, inferred from its outputs. Positions are code points, and nothing is
normalised. Precision is over all changed sentences (or positions), recall over those with an error;
both are rounded to three decimals of a percent before F1 is computed.

C-LLM's projection keeps ChERRANT's S edits of equal length, or difflib's replacements of equal
length whose source is Chinese throughout, and drops every other change of the prediction.
`…_if_len_differs` projects only predictions whose length differs from their source's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from cecbench.cherrant.costs import Dictionaries, read_opencc_version, remove_whitespace, simplify
from cecbench.cherrant.edits import annotate
from cecbench.metrics.base import Metric, Options, Ratio, Report, Totals, stack_columns
from cecbench.metrics.cherrant import DictionaryOptions
from cecbench.metrics.rows import IntArray, Row, count_positions
from cecdata.common.settings import option, require_known

LEVELS = ("S_D", "S_C", "C_D", "C_C")
FIELDS = tuple(f"{level}_{part}" for level in LEVELS for part in ("tp", "pred", "gold"))
RATIOS: dict[str, Ratio] = {
    f"{level}_f1": (f"{level}_tp", f"{level}_pred", f"{level}_gold") for level in LEVELS
}
#: The script's `ignore_chars` behind the published `revert_ignore_punct` numbers, as far as they
#: can be inferred from these: the marks […]%_-}{ are known to count.
PUNCTUATION = "，。！？；：、“”‘’（）《》【】,.!?;:()\"'"


def to_percentages(tp: int, predicted: int, gold: int) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 as the script prints them; None where it divides by zero."""
    if predicted == 0 or gold == 0:
        return None
    precision = round(tp / predicted * 100, 3)
    recall = round(tp / gold * 100, 3)
    f1 = round(2 * precision * recall / (precision + recall + 1e-10), 3)
    return precision, recall, f1


class Cscd(Metric):
    """CSCD-NS; with `revert_ignore_punct` the script's `ignore_chars` are set."""

    name = "cscd"
    fields = FIELDS
    ratios = RATIOS
    headline = "S_C_f1"
    unequal_lengths = ("revert", "strict", "drop", "revert_ignore_punct")
    stop_error = "AssertionError"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._ignored = PUNCTUATION if self.unequal_length == "revert_ignore_punct" else ""

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row, whose three strings have one length."""
        positions = count_positions(rows, ignored_source=self._ignored)
        gold, changed = positions.gold > 0, positions.changed > 0
        return stack_columns(  # tp, pred and gold of each of LEVELS
            *(changed & positions.same_places, changed, gold),
            *(changed & positions.all_right, changed, gold),
            *(positions.detected, positions.changed, positions.gold),
            *(positions.corrected, positions.changed, positions.gold),
        )

    def report(self, sums: Totals) -> Report:
        """Return the twelve numbers of the script and their counts."""
        values: Report = {}
        counts: dict[str, list[int]] = {}
        stopped = False
        for level in LEVELS:
            tp, predicted, gold = (sums[f"{level}_{part}"] for part in ("tp", "pred", "gold"))
            counts[level] = [tp, predicted, gold]
            printed = to_percentages(tp, predicted, gold)
            stopped |= printed is None
            for part, value in zip(("p", "r", "f1"), printed or (None, None, None), strict=True):
                values[f"{level}_{part}"] = value
        values["counts_tp_pred_gold"] = counts
        if stopped:
            values["raises"] = "ZeroDivisionError: division by zero"
            why = "no scored sentence has an error"
            if sums["S_C_gold"]:
                why = "no prediction counts as a change"
                if "revert" in self.unequal_length:
                    why += ", because one of another length than its source counts as the source"
            values["raises_because"] = (
                f"{why}: the published script divides by zero and prints nothing; the counts are "
                "right, the percentages are null"
            )
        return values


#: the first is the default
PROJECTIONS = ("cherrant", "difflib", "cherrant_if_len_differs", "difflib_if_len_differs")
LEAD_IN = "纠错后的句子："


def project_cherrant(rows: Sequence[Row], dictionaries: Dictionaries) -> list[str]:
    """Return each source with the substitutions of equal length by which ChERRANT turns it into its
    prediction.

    As published: the text up to 纠错后的句子： is cut off first; of several cheapest alignments
    only the first counts; and the edits' offsets count characters without whitespace but are
    applied to the source with its whitespace, so edits after a space land one character early.
    """
    answers = simplify([remove_whitespace(row.prediction.split(LEAD_IN, 1)[-1]) for row in rows])
    return [
        _project_edits(row.source, answer, dictionaries)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _project_edits(source: str, answer: str, dictionaries: Dictionaries) -> str:
    """Return a source with ChERRANT's substitutions of equal length towards the answer."""
    projected = list(source)
    readings = annotate(remove_whitespace(source), answer, dictionaries).readings
    for edit in readings[0] if readings else ():
        if edit.kind == "S" and len(edit.text) == edit.end - edit.start:
            projected[edit.start : edit.end] = edit.text
    return "".join(projected)


def project_difflib(source: str, answer: str) -> str:
    """Return a source with difflib's replacements of equal length towards the answer."""
    if source == answer:
        return source
    projected = list(source)
    for tag, start, end, a_start, a_end in SequenceMatcher(None, source, answer).get_opcodes():
        fits = tag == "replace" and end - start == a_end - a_start
        # C-LLM's script takes fewer characters for Chinese than ChERRANT does
        if fits and all("\u4e00" <= character <= "\u9fa5" for character in source[start:end]):
            projected[start:end] = answer[a_start:a_end]
    return "".join(projected)


@dataclass(frozen=True)
class CllmOptions(DictionaryOptions):
    """Options of C-LLM's scorer."""

    projection: str | None = option(
        None, f"How the scorer cllm compares texts of different lengths: {', '.join(PROJECTIONS)}."
    )


class Cllm(Cscd):
    """C-LLM's scorer with one of its projections."""

    name = "cllm"
    unequal_lengths = ("project", "strict", "revert", "drop")
    options_type = CllmOptions
    fallback = "project"

    def __init__(self, options: CllmOptions) -> None:
        super().__init__(options)
        projection = options.projection or PROJECTIONS[0]
        require_known("projection", projection, PROJECTIONS)
        self._only_unequal = projection.endswith("_if_len_differs")
        self._dictionaries: Dictionaries | None = None  # of ChERRANT; None: difflib projects
        self.normalisation = f"projection:{projection}"
        self.details = {"projection": projection}
        if projection.startswith("cherrant"):
            dictionaries = self._dictionaries = options.dictionaries
            self.normalisation += f";costs:{dictionaries.name}"
            self.details |= {"dictionaries": dictionaries.name, **dictionaries.details}
            self.details["opencc"] = read_opencc_version()

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the CSCD-NS counts of the projected predictions."""
        projected = list(rows)
        indexes = [
            index
            for index, row in enumerate(rows)
            if not self._only_unequal or len(row.prediction) != len(row.source)
        ]
        unprojected = [rows[index] for index in indexes]
        if self._dictionaries is None:
            texts = [project_difflib(row.source, row.prediction) for row in unprojected]
        else:
            texts = project_cherrant(unprojected, self._dictionaries)
        for index, text in zip(indexes, texts, strict=True):
            projected[index] = rows[index]._replace(prediction=text)
        return super().count(projected)

    def stops(self, rows: Sequence[Row]) -> bool:
        """Return whether a target's length differs from its source's, or a prediction is empty."""
        return any(len(s) != len(t) or not p.strip() for _, s, t, p in rows)
