"""CSCD-NS evaluation: sentence and character level, detection and correction.

The rules are those of `nghuyong/cscd-ns`, evaluation/evaluate.py, inferred from its outputs.
Positions are code points, and nothing is normalised. Precision is over all changed sentences (or
positions), recall over those with an error; both are rounded to three decimals of a percent before
F1 is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from cecbench.metrics.base import Flags, Options, Ratio, Report, Scorer, Totals, columns
from cecbench.metrics.rows import IntArray, Positions, Row, count_positions

LEVELS = ("S_D", "S_C", "C_D", "C_C")
FIELDS = tuple(f"{level}_{part}" for level in LEVELS for part in ("tp", "pred", "gold"))
RATIOS: dict[str, Ratio] = {
    f"{level}_f1": (f"{level}_tp", f"{level}_pred", f"{level}_gold") for level in LEVELS
}
#: The script's `ignore_chars` behind the published `revert_ignore_punct` numbers, as far as they
#: can be inferred from these: the marks […]%_-}{ are known to count.
PUNCTUATION = "，。！？；：、“”‘’（）《》【】,.!?;:()\"'"
ZERO_DIVISION = "ZeroDivisionError: division by zero"


def percentages(tp: int, predicted: int, gold: int) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 as the script prints them; None where it divides by zero.

    >>> percentages(56, 110, 147)
    (50.909, 38.095, 43.58)
    >>> percentages(0, 0, 147) is None
    True
    """
    if predicted == 0 or gold == 0:
        return None
    precision = round(tp / predicted * 100, 3)
    recall = round(tp / gold * 100, 3)
    f1 = round(2 * precision * recall / (precision + recall + 1e-10), 3)
    return precision, recall, f1


class Cscd(Scorer):
    """CSCD-NS; under the policy `revert_ignore_punct` with the script's `ignore_chars` set."""

    name = "cscd"
    fields = FIELDS
    ratios = RATIOS
    headline = "S_C_f1"
    policies = ("revert", "strict", "drop", "revert_ignore_punct")
    stop_error = "AssertionError"

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self._ignored = PUNCTUATION if self.options.policy == "revert_ignore_punct" else ""
        self.scans = not self._ignored

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row, whose three strings have one length."""
        return self.count_facts(count_positions(rows, ignored_source=self._ignored))

    def count_facts(self, where: Positions, whole: Flags | None = None) -> IntArray:
        """Return the counts of each row from its positions alone."""
        del whole
        gold, changed = where.has_gold, where.has_changed
        return columns(
            *(changed & where.same_places, changed, gold),
            *(changed & where.all_right, changed, gold),
            *(where.detected, where.changed, where.gold),
            *(where.corrected, where.changed, where.gold),
        )

    def report(self, sums: Totals) -> Report:
        """Return the twelve numbers of the script and their counts."""
        values: Report = {}
        counts: dict[str, list[int]] = {}
        stopped = False
        for level in LEVELS:
            tp, predicted, gold = (sums[f"{level}_{part}"] for part in ("tp", "pred", "gold"))
            counts[level] = [tp, predicted, gold]
            printed = percentages(tp, predicted, gold)
            stopped |= printed is None
            for part, value in zip(("p", "r", "f1"), printed or (None, None, None), strict=True):
                values[f"{level}_{part}"] = value
        values["counts_tp_pred_gold"] = counts
        if stopped:
            values["raises"] = ZERO_DIVISION
            values["raises_because"] = (
                "no sentence was changed or none has an error: the published script divides by "
                "zero and prints nothing; the counts stand, the numbers are null"
            )
        return values
