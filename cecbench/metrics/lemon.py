"""LEMON's sentence scores: `run.py`, and the variant of `gen.py`, `sft_csc.py` and ReLM.

Whole strings are compared, and the numbers are fractions that are not rounded. `run.py` adds 1e-12
to every denominator; fp are changed clean sentences, fn unchanged sentences with an error. A
wrongly changed sentence is neither, but counts in both denominators; the variant calls it wp. The
scripts' tokeniser (which cuts at 126 tokens, ReLM's at 62, and drops `[UNK]`) belongs to the
systems and is not applied here.
"""

from __future__ import annotations

from collections.abc import Sequence

from cecbench.metrics.base import Metric, Ratio, Report, Totals, flag_rows, stack_columns
from cecbench.metrics.rows import IntArray, Row

EPSILON = 1e-12
FIELDS = ("tp", "pred", "gold", "fp", "fn", "clean", "found", "found_pred")
RATIOS: dict[str, Ratio] = {
    "run.compute.f1": ("tp", "pred", "gold"),
    "run.compute_detect.f1": ("found", "pred", "gold"),
}
VARIANTS = ("gen.compute", "relm.csc_compute", "sft.csc_compute")


def _report_ratios(tp: int, predicted: int, gold: int) -> Report:
    """Return precision, recall and F1 with a small constant in each denominator."""
    precision = tp / (predicted + EPSILON)
    recall = tp / (gold + EPSILON)
    f1 = 2 * precision * recall / (precision + recall + EPSILON)
    return {"p": precision, "r": recall, "f1": f1}


def _report_variant(sums: Totals) -> Report:
    """Return the numbers of the variant's functions; for no errors zeros, as published."""
    tp, gold = sums["tp"], sums["gold"]
    wrong = gold - tp - sums["fn"]
    numbers: Report = {"n_tp": tp, "n_fp": sums["fp"], "n_fn": sums["fn"], "n_wp": wrong}
    # The constant is added above and below, so that the rate is 1 without a clean sentence.
    false_rate = (sums["fp"] + EPSILON) / (sums["clean"] + EPSILON)
    if gold == 0:
        return {"p": 0, "r": 0, "f1": 0, "fpr": false_rate, "wpr": 0, **numbers}
    predicted = tp + sums["fp"] + wrong
    if predicted == 0:
        error = "ZeroDivisionError: float division by zero"
        words = "no prediction counts as a change: the published function divides by zero here"
        return {"error": error, "error_because": words}
    precision, recall = tp / predicted, tp / gold
    f1 = 2 * precision * recall / (precision + recall + EPSILON)
    ratios = {"p": precision, "r": recall, "f1": f1}
    return {**ratios, "fpr": false_rate, "wpr": wrong / gold, **numbers}


class Lemon(Metric):
    """LEMON: the two functions of `run.py` and the three copies of the variant."""

    name = "lemon"
    fields = FIELDS
    ratios = RATIOS
    headline = "run.compute.f1"
    unequal_lengths = ("strict", "revert", "drop")

    def count(self, rows: Sequence[Row]) -> IntArray:
        error, changed, right = flag_rows(rows)
        return stack_columns(  # in the order of FIELDS
            *(error & right, changed, error),
            *(~error & changed, error & ~changed, ~error),
            *(error & changed, changed),
        )

    def report(self, sums: Totals) -> Report:
        """Return the numbers of all five functions."""
        predicted, gold = sums["pred"], sums["gold"]
        false_rate = {"fpr": sums["fp"] / (sums["clean"] + EPSILON)}
        numbers = {f"n_{name}": sums[name] for name in ("tp", "fp", "fn")}
        corrected = _report_ratios(sums["tp"], predicted, gold)
        detected = _report_ratios(sums["found"], predicted, gold)
        return {
            "run.compute": {**corrected, **false_rate, **numbers},
            "run.compute_detect": {**detected, **false_rate},
            **dict.fromkeys(VARIANTS, _report_variant(sums)),
        }
