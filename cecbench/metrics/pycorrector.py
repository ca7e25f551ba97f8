"""pycorrector's evaluations: sentence level, the pointer network's characters, FASPell's port.

The sentence level compares whole strings; fp are changed clean sentences only, and a wrongly
corrected sentence is fn. `eval_model_batch` reads its sentences from a file of lines, source TAB
target: it strips whitespace from both ends of a line, takes a line that begins with `#` for a
comment, and skips a line that does not have two cells.

The pointer network's character level, which CLTC has too: detection counts positions. Correction
counts only in sentences with a detected error position: a hit is a detected position that was
corrected, a false positive one that was changed to something else, and a miss an error position
whose target character was written at **none** of the sentence's detected positions. So its recall
is not over all errors.

FASPell's evaluation as pycorrector ported it, loose and strict, and its unit test's fractions: the
three strings are compared position by position to the end of the shortest. The character level
counts positions. At the sentence level, loose counts a sentence as detected if both sides have a
position, strict if their positions are equal. The accuracy of correction compares whole strings;
the accuracy of detection adds to the hits the sentences that have no position on either side and
whose prediction equals the target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics.base import Metric, Ratio, Report, Totals, flag_rows, stack_columns
from cecbench.metrics.rows import BoolArray, IntArray, Positions, Row, count_positions

CHARACTER_FIELDS = ("found", "alarms", "missed", "fixed", "miswritten", "unwritten")


def count_characters(rows: Sequence[Row], positions: Positions) -> tuple[IntArray, ...]:
    """Return one array, shape (rows,), for each of CHARACTER_FIELDS."""
    unwritten = np.zeros(len(rows), dtype=np.int64)
    # Only sentences with an uncorrected error can have a miss.
    may_miss = (positions.detected > 0) & (positions.corrected < positions.gold)
    for index in np.flatnonzero(may_miss).tolist():
        # the characters of source, target and prediction, to the end of the shortest
        triples = list(zip(*rows[index][1:], strict=False))
        at_detected = {said for wrong, right, said in triples if wrong not in (right, said)}
        unwritten[index] = sum(
            right not in at_detected for wrong, right, _ in triples if wrong != right
        )
    return (
        positions.detected,
        positions.changed - positions.detected,
        positions.gold - positions.detected,
        positions.corrected,
        positions.detected - positions.corrected,
        unwritten,
    )


Prf = tuple[float, float, float]


def report_characters(sums: Totals) -> tuple[Prf, Prf]:
    """Return precision, recall and F1 of detection, and those of correction."""
    counts = [sums[f"char_{name}"] for name in CHARACTER_FIELDS]
    return compute_prf(*counts[:3]), compute_prf(*counts[3:])


def compute_prf(tp: int, fp: int, fn: int) -> Prf:
    """Return precision, recall and F1, with the scripts' int 0 for an empty denominator."""
    precision = tp / (tp + fp) if tp + fp else 0
    recall = tp / (tp + fn) if tp + fn else 0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0


FASPELL_FIELDS = (
    "rows",
    *("char_gold", "char_pred", "char_found", "char_fixed"),
    *("gold", "pred", "loose", "strict", "right"),
    *("clean_right", "equal"),
)


def count_for_faspell(rows: Sequence[Row], positions: Positions) -> dict[str, IntArray | BoolArray]:
    """Return the counts of FASPell by FASPELL_FIELDS, in their order, each of shape (rows,)."""
    has_gold, has_pred = positions.gold > 0, positions.changed > 0
    equal = flag_rows(rows).right
    return {
        "rows": np.ones(len(rows), np.int64),
        "char_gold": positions.gold,
        "char_pred": positions.changed,
        "char_found": positions.detected,
        "char_fixed": positions.corrected,
        "gold": has_gold,
        "pred": has_pred,
        "loose": has_gold & has_pred,
        "strict": has_pred & positions.same_places,
        "right": has_pred & positions.all_right,
        "clean_right": ~has_gold & ~has_pred & equal,
        "equal": equal,
    }


def report_faspell(sums: Totals, prefix: str) -> Report:
    """Return the port's numbers and the original test's fractions, each loose and strict."""
    counts = {name: sums[f"{prefix}{name}"] for name in FASPELL_FIELDS}
    table: Report = {}
    for mode in ("loose", "strict"):
        table[f"faspell_port_{mode}"] = _report_port(counts, mode)
        table[f"faspell_test_unit_{mode}"] = _list_fractions(counts, mode)
    return table


def _report_port(counts: Totals, mode: str) -> Report:
    """Return the numbers of pycorrector's port of FASPell's evaluation, in one mode."""
    table: Report = {"all_sent_count": counts["rows"]}
    for name, hits, pred, gold in (
        ("det_char", "char_found", "char_pred", "char_gold"),
        ("cor_char", "char_fixed", "char_pred", "char_gold"),
        ("det_sent", mode, "pred", "gold"),
        ("cor_sent", "right", "pred", "gold"),
    ):
        tp = counts[hits]
        fp, fn = counts[pred] - tp, counts[gold] - tp
        table[f"{name}_counts"] = [tp, fp, fn]
        for part, value in zip(("p", "r", "f1"), compute_prf(tp, fp, fn), strict=True):
            table[f"{name}_{part}"] = value
    table["det_sent_acc"] = (counts[mode] + counts["clean_right"]) / counts["rows"]
    table["cor_sent_acc"] = counts["equal"] / counts["rows"]
    return table


def _list_fractions(counts: Totals, mode: str) -> Report:
    """Return the fractions that the original test of FASPell prints, in one mode."""
    return {
        name: {
            "char_p": f"{counts[characters]}/{counts['char_pred']}",
            "char_r": f"{counts[characters]}/{counts['char_gold']}",
            "sent_p": f"{counts[sentences]}/{counts['pred']}",
            "sent_r": f"{counts[sentences]}/{counts['gold']}",
            "sent_a": f"{right}/{counts['rows']}",
        }
        for name, characters, sentences, right in (
            ("det", "char_found", mode, counts[mode] + counts["clean_right"]),
            ("cor", "char_fixed", "right", counts["equal"]),
        )
    }


SENTENCE_FIELDS = ("tp", "fp", "fn", "tn")
FIELDS = (
    *(f"all_{name}" for name in SENTENCE_FIELDS),
    *(f"batch_{name}" for name in SENTENCE_FIELDS),
    *(f"char_{name}" for name in CHARACTER_FIELDS),
    "short",
    *(f"faspell_{name}" for name in FASPELL_FIELDS),
    "all_gold",
    "all_pred",
)
RATIOS: dict[str, Ratio] = {"compute_sentence_level_prf.f1": ("all_tp", "all_pred", "all_gold")}


def _judge_outcomes(error: BoolArray, right: BoolArray) -> tuple[BoolArray, ...]:
    """Return which rows are tp, fp, fn and tn, in the order of SENTENCE_FIELDS."""
    return error & right, ~error & ~right, error & ~right, ~error & right


def _read_line(row: Row) -> Row | None:
    """Return the row as the script reads it from its file; None if it skips the line."""
    line = f"{row.source}\t{row.target}".strip()
    cells = line.split("\t")
    if line.startswith("#") or len(cells) != 2:
        return None
    return Row(row.id, cells[0], cells[1], row.prediction)


def _report_sentences(sums: Totals, prefix: str) -> Report:
    """Return accuracy, precision, recall and F1 of sentences, or the error that ends the script."""
    tp, fp, fn, tn = (sums[f"{prefix}{name}"] for name in SENTENCE_FIELDS)
    rows = tp + fp + fn + tn
    if rows == 0:
        words = "every line begins with # (a comment) or has not two cells: the published script"
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


def _report_corrector(sums: Totals) -> Report:
    """Return F1 by characters and what the script logs, or the error that ends it."""
    if sums["short"]:
        return {
            "error": "IndexError: string index out of range",
            "error_because": f"{sums['short']} rows have a target or prediction shorter than their"
            " source: the published script stops at the first",
        }
    detected, corrected = report_characters(sums)
    return {
        "det_f1": detected[-1],
        "cor_f1": corrected[-1],
        "log": [
            "The {} result is precision={}, recall={} and F1={}".format(name, *values)
            for name, values in (("detection", detected), ("correction", corrected))
        ],
    }


class Pycorrector(Metric):
    """The evaluations of the package pycorrector."""

    name = "pycorrector"
    fields = FIELDS
    ratios = RATIOS
    headline = "compute_sentence_level_prf.f1"
    unequal_lengths = ("strict", "revert", "drop")

    def count(self, rows: Sequence[Row]) -> IntArray:
        positions = count_positions(rows)
        error, _, right = flag_rows(rows)
        is_as_marked = (error & right) | (~error & ~right)
        lines = [_read_line(row) for row in rows]
        is_read = np.array([row is not None for row in lines], dtype=np.bool_)
        batch = flag_rows([row or Row("", "", "", "") for row in lines])
        is_short = np.array([min(len(t), len(p)) < len(s) for _, s, t, p in rows], dtype=np.bool_)
        return stack_columns(  # in the order of FIELDS
            *_judge_outcomes(error, right),
            *(outcome & is_read for outcome in _judge_outcomes(batch.error, batch.right)),
            *count_characters(rows, positions),
            is_short,
            *count_for_faspell(rows, positions).values(),
            error,
            is_as_marked,
        )

    def report(self, sums: Totals) -> Report:
        """Return the numbers of every evaluation of the package."""
        return {
            "compute_sentence_level_prf": _report_sentences(sums, "all_"),
            "eval_model_batch": _report_sentences(sums, "batch_"),
            "compute_corrector_prf": _report_corrector(sums),
            **report_faspell(sums, "faspell_"),
        }
