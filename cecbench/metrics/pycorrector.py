"""pycorrector's evaluations: sentence level, the pointer network's characters, FASPell's port.

The sentence level compares whole strings; fp are changed clean sentences only, and a wrongly
corrected sentence is fn. `eval_model_batch` reads its sentences from a file of lines, source TAB
target: it strips whitespace from both ends of a line, takes a line that begins with `#` for a
comment, and skips a line that does not have two cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics import faspell, predicted_words
from cecbench.metrics.base import Ratio, Report, Scorer, Totals, columns, flags
from cecbench.metrics.positions import BoolArray, IntArray, count_positions
from cecbench.metrics.rows import Row

SENTENCE_FIELDS = ("tp", "fp", "fn", "tn")
FIELDS = (
    *(f"all_{name}" for name in SENTENCE_FIELDS),
    *(f"batch_{name}" for name in SENTENCE_FIELDS),
    *(f"char_{name}" for name in predicted_words.FIELDS),
    "short",
    *(f"faspell_{name}" for name in faspell.FIELDS),
    "all_gold",
    "all_pred",
)
RATIOS: dict[str, Ratio] = {"compute_sentence_level_prf.f1": ("all_tp", "all_pred", "all_gold")}


def _outcomes(error: BoolArray, right: BoolArray) -> tuple[BoolArray, ...]:
    """Return tp, fp, fn, tn of each sentence."""
    return error & right, ~error & ~right, error & ~right, ~error & right


def _line(row: Row) -> Row | None:
    """Return the row as the script reads it from its file; None if it skips the line."""
    line = f"{row.source}\t{row.target}".strip()
    cells = line.split("\t")
    if line.startswith("#") or len(cells) != 2:
        return None
    return Row(row.id, cells[0], cells[1], row.prediction)


def _sentence(sums: Totals, prefix: str) -> Report:
    tp, fp, fn, tn = (sums[f"{prefix}{name}"] for name in SENTENCE_FIELDS)
    rows = tp + fp + fn + tn
    if rows == 0:
        words = "every line is a comment (it begins with #) or not two cells: the published script"
        return {
            "error": "ZeroDivisionError: float division by zero",
            "error_because": f"{words} divides by zero here",
        }
    precision = tp / (tp + fp) if tp else 0.0
    recall = tp / (tp + fn) if tp else 0.0
    total = precision + recall
    return {
        "acc": (tp + tn) / rows,
        "p": precision,
        "r": recall,
        "f1": 2 * precision * recall / total if total else 0,
    }


def _characters(sums: Totals) -> Report:
    if sums["short"]:
        return {
            "error": "IndexError: string index out of range",
            "error_because": f"{sums['short']} rows have a target or prediction shorter than their"
            " source: the published script stops at the first",
        }
    detected, corrected = (
        predicted_words.detection(sums, "char_"),
        predicted_words.correction(sums, "char_"),
    )
    return {
        "det_f1": detected[2],
        "cor_f1": corrected[2],
        "log": [
            "The {} result is precision={}, recall={} and F1={}".format(name, *values)
            for name, values in (("detection", detected), ("correction", corrected))
        ],
    }


class Pycorrector(Scorer):
    """The evaluations of the package pycorrector."""

    name = "pycorrector"
    fields = FIELDS
    ratios = RATIOS
    headline = "compute_sentence_level_prf.f1"
    policies = ("strict", "revert", "drop")

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row."""
        where = count_positions(rows)
        error, _, right = flags(rows)
        lines = [_line(row) for row in rows]
        read = np.array([row is not None for row in lines], dtype=np.bool_)
        batch = flags([row or Row("", "", "", "") for row in lines])
        short = np.array([min(len(t), len(p)) < len(s) for _, s, t, p in rows], dtype=np.bool_)
        return columns(
            *_outcomes(error, right),
            *(part & read for part in _outcomes(batch[0], batch[2])),
            *predicted_words.columns_of(rows, where),
            short,
            *faspell.columns_of(rows, where),
            *(error, (error & right) | (~error & ~right)),
        )

    def report(self, sums: Totals) -> Report:
        """Return the numbers of every evaluation of the package."""
        return {
            "compute_sentence_level_prf": _sentence(sums, "all_"),
            "eval_model_batch": _sentence(sums, "batch_"),
            "compute_corrector_prf": _characters(sums),
            **faspell.report(sums, "faspell_"),
        }
