"""pycorrector's evaluations: sentence level, the pointer network's characters, FASPell's port.

Sentence level: fp are changed clean sentences only, a wrongly corrected error sentence is fn;
whole strings. `eval_model_batch` reads its sentences from a file in which a line that begins with
`#` is a comment, so such sentences are left out there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics import faspell, predicted_words
from cecbench.metrics.positions import IntArray, count_positions
from cecbench.metrics.rows import Row
from cecbench.metrics.table import Ratio, Report, Scorer, Totals, columns, flags

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


def count(rows: Sequence[Row]) -> IntArray:
    """Counts per sentence."""
    where = count_positions(rows)
    error, changed, right = flags(rows)
    sentence = (error & right, ~error & changed, error & ~right, ~error & ~changed)
    read = np.array([not row.source.startswith("#") for row in rows], dtype=np.bool_)
    short = np.array([min(len(t), len(p)) < len(s) for _, s, t, p in rows], dtype=np.bool_)
    return columns(
        *sentence,
        *(part & read for part in sentence),
        *predicted_words.columns_of(rows, where),
        short,
        *faspell.columns_of(rows, where),
        *(error, (error & right) | (~error & changed)),
    )


def report(sums: Totals) -> Report:
    """Every evaluation of the package."""
    return {
        "compute_sentence_level_prf": _sentence(sums, "all_"),
        "eval_model_batch": _sentence(sums, "batch_"),
        "compute_corrector_prf": _characters(sums),
        **faspell.report(sums, "faspell_"),
    }


def _sentence(sums: Totals, prefix: str) -> Report:
    tp, fp, fn, tn = (sums[f"{prefix}{name}"] for name in SENTENCE_FIELDS)
    rows = tp + fp + fn + tn
    if rows == 0:
        words = "every sentence begins with # and is read as a comment: the published script"
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


def make_pycorrector() -> Scorer:
    """The scorer of pycorrector."""
    return Scorer(
        name="pycorrector",
        fields=FIELDS,
        count=count,
        report=report,
        ratios=RATIOS,
        headline="compute_sentence_level_prf.f1",
        policies=("strict", "revert", "drop"),
    )
