"""The SIGHAN family: Paddle's sighan_evaluate, ReaLiSe, SCOPE, and CLTC's track 1.

Paddle compares whole strings; its precision is over corrected sentences and changed **clean** ones,
so a wrongly corrected sentence is no false positive. The others compare edits as (position,
character); their precision is over all changed sentences. ReaLiSe's second table first removes
edits that write 地 or 得 from both sides. SCOPE adds a character level, CLTC that of the pointer
network.

The scripts write a sentence's edits to a line, `id, place, character, place, character`, and strip
the line when they read it. Paddle splits it at single spaces: it stops at an edit that writes a
space before another edit, and keeps only the place of a last edit that writes whitespace. ReaLiSe,
SCOPE and CLTC split it at comma and space, and stop if the last edit writes whitespace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics import pycorrector
from cecbench.metrics.base import Metric, Ratio, Report, Totals, flag_rows, stack_columns
from cecbench.metrics.rows import BoolArray, IntArray, Positions, Row, count_positions

Edits = list[tuple[int, str]]


def judge_as_paddle(rows: Sequence[Row], right: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return per row: whether Paddle takes it for corrected, and whether it stops there.

    right: the rows with an error whose prediction is the target.
    """
    hits, stops = right.copy(), np.zeros(len(rows), dtype=np.bool_)
    for index in _find_whitespace(rows):
        row = rows[index]
        gold, said = _list_edits(row, row.target), _list_edits(row, row.prediction)
        stops[index] = any(character == " " for _, character in (*gold[:-1], *said[:-1]))
        hits[index] = bool(said) and _drop_unread(gold) == _drop_unread(said)
    return hits, stops


def count_blank_ends(rows: Sequence[Row]) -> tuple[IntArray, ...]:
    """Return an array for each of BLANK_FIELDS, shape (rows,)."""
    blanks = np.zeros((4, len(rows)), dtype=np.int64)
    for index in _find_whitespace(rows):
        row = rows[index]
        for text in (row.target, row.prediction):
            edits = _list_edits(row, text)
            no_de = [(place, character) for place, character in edits if character not in "地得"]
            for field, listed in ((0, edits), (2, no_de)):
                if listed and listed[-1][1].isspace():
                    blanks[field : field + 2, index] += (1, listed[-1][0])
    return tuple(blanks)


def _find_whitespace(rows: Sequence[Row]) -> list[int]:
    """Return the indexes of rows whose target or prediction has whitespace, which are few."""
    return [
        index
        for index, row in enumerate(rows)
        if any(len("".join(text.split())) != len(text) for text in (row.target, row.prediction))
    ]


def _list_edits(row: Row, text: str) -> Edits:
    """Return (position from 1, character) for each character of a text that is not the source's."""
    pairs = zip(row.source, text, strict=False)  # to the end of the shorter
    return [(place, b) for place, (a, b) in enumerate(pairs, start=1) if a != b]


def _drop_unread(edits: Edits) -> Edits:
    """Return the edits that Paddle reads with both place and character."""
    return edits[:-1] if edits and edits[-1][1].isspace() else edits


#: all sentences; those with errors; changed; changed at the places of the errors, and right, each
#: also of the changed ones alone
SENTENCE_FIELDS = ("rows", "gold", "pred", "same", "det_tp", "right", "cor_tp")
PADDLE_FIELDS = ("error", "clean_changed", "found", "fixed", "space")
#: targets and predictions whose last edit writes whitespace: their number, and the sum of those
#: edits' places (from 1); both also without edits that write 地 or 得
BLANK_FIELDS = ("rows", "places", "no_de_rows", "no_de_places")
FIELDS = (
    *(f"plain_{name}" for name in SENTENCE_FIELDS),
    *(f"no_de_{name}" for name in SENTENCE_FIELDS),
    *(f"paddle_{name}" for name in PADDLE_FIELDS),
    *(f"blank_{name}" for name in BLANK_FIELDS),
    *(f"char_{name}" for name in pycorrector.CHARACTER_FIELDS),
)
RATIOS: dict[str, Ratio] = {
    "realise.sent-detect-f1": ("plain_det_tp", "plain_pred", "plain_gold"),
    "realise.sent-correct-f1": ("plain_cor_tp", "plain_pred", "plain_gold"),
}
ERROR: Report = {
    "error": "ZeroDivisionError: division by zero",
    "error_because": "no prediction counts as a change, no sentence has an error, or (SCOPE) no"
    " error was detected: the published script divides by zero here",
}


def _count_sentences(positions: Positions) -> dict[str, IntArray | BoolArray]:
    """Return the counts of each sentence by SENTENCE_FIELDS, in their order."""
    has_pred = positions.changed > 0
    return {
        "rows": np.ones(len(has_pred), np.int64),
        "gold": positions.gold > 0,
        "pred": has_pred,
        "same": positions.same_places,
        "det_tp": positions.same_places & has_pred,
        "right": positions.all_right,
        "cor_tp": positions.all_right & has_pred,
    }


def _report_paddle(sums: Totals) -> Report:
    """Return the numbers of Paddle with their fractions, or the error that ends its script."""
    if sums["paddle_space"]:
        return {
            "error": "ValueError: invalid literal for int() with base 10: ''",
            "error_because": f"{sums['paddle_space']} rows have an edit that writes a space, and a"
            " later edit: the published script splits its own files at spaces, and stops",
        }
    wrong, gold = sums["paddle_clean_changed"], sums["paddle_error"]
    table: Report = {}
    for name, hits in (("detection", sums["paddle_found"]), ("correction", sums["paddle_fixed"])):
        precision, recall, f1 = pycorrector.compute_prf(hits, wrong, gold - hits)
        table[name] = {
            "Precision": {"value": f"{precision:.4f}", "fraction": f"{hits}/{hits + wrong}"},
            "Recall": {"value": f"{recall:.4f}", "fraction": f"{hits}/{gold}"},
            "F1-Score": f"{f1:.4f}",
        }
    return table


def _find_read_error(sums: Totals, prefix: str = "") -> Report | None:
    """Return the scripts' error if they cannot read back the edits that they wrote; else None."""
    rows = sums[f"blank_{prefix}rows"]
    if rows == 0:
        return None
    # The message names the place of the first such edit, which the sums tell if there is only one.
    place = f"'{sums[f'blank_{prefix}places']},'" if rows == 1 else "a place and a comma"
    return {
        "error": f"ValueError: invalid literal for int() with base 10: {place}",
        "error_because": f"in {rows} rows the last edit writes whitespace, which the published"
        " script strips from the line that it reads back",
    }


def _compute_sentence_prf(sums: Totals, prefix: str, level: str) -> pycorrector.Prf | None:
    """Return precision, recall and F1 of sentences; None where a denominator is 0."""
    hits, pred, gold = (sums[f"{prefix}{name}"] for name in (f"{level}_tp", "pred", "gold"))
    if pred == 0 or gold == 0:
        return None
    precision, recall, f1 = pycorrector.compute_prf(hits, pred - hits, gold - hits)
    return precision, recall, float(f1)  # these scripts print 0.0 where pycorrector's prints 0


def _report_realise(sums: Totals, prefix: str) -> Report:
    """Return the sentence numbers of ReaLiSe in percent, or the error that ends its script."""
    table: Report = {}
    for name, level, hit in (("detect", "det", "same"), ("correct", "cor", "right")):
        values = _compute_sentence_prf(sums, prefix, level)
        if values is None:
            return dict(ERROR)
        table[f"sent-{name}-acc"] = sums[f"{prefix}{hit}"] / sums[f"{prefix}rows"] * 100
        for part, value in zip(("p", "r", "f1"), values, strict=True):
            table[f"sent-{name}-{part}"] = value * 100
    return table


def _report_scope(sums: Totals) -> Report:
    """Return the numbers of SCOPE in percent, or the error that ends its script."""
    detected, corrected = sums["char_found"], sums["char_fixed"]
    table = _report_realise(sums, "plain_")
    if "error" in table or detected == 0:
        return dict(ERROR)
    missed, miswritten = sums["char_missed"], sums["char_miswritten"]
    *_, detect = pycorrector.compute_prf(detected, sums["char_alarms"], missed)
    # SCOPE's correction counts only detected positions.
    *_, correct = pycorrector.compute_prf(corrected, miswritten, missed + miswritten)
    return {**table, "char-detect-f1": detect * 100.0, "char-correct-f1": correct * 100.0}


def _report_cltc(sums: Totals) -> Report:
    """Return the sentence numbers of CLTC in percent, or the error that ends its script."""
    table: Report = {}
    for name, level in (("Detection", "det"), ("Correction", "cor")):
        values = _compute_sentence_prf(sums, "plain_", level)
        if values is None:
            return dict(ERROR)
        table[name] = _to_percent(values)
    return table


def _to_percent(values: pycorrector.Prf) -> Report:
    names = ("Precision", "Recall", "F1")
    return {name: value * 100 for name, value in zip(names, values, strict=True)}


class Sighan(Metric):
    """The SIGHAN family, whose headline is that of ReaLiSe."""

    name = "sighan"
    fields = FIELDS
    ratios = RATIOS
    headline = "realise.sent-correct-f1"
    unequal_lengths = ("revert", "strict", "drop")
    stop_error = "unequal lengths"

    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row, whose three strings have one length."""
        positions = count_positions(rows)
        without_de = count_positions(rows, ignored_answer="地得")
        error, changed, right = flag_rows(rows)
        return stack_columns(
            *_count_sentences(positions).values(),
            *_count_sentences(without_de).values(),
            *(error, ~error & changed, error & (positions.changed > 0) & positions.same_places),
            *judge_as_paddle(rows, error & right),
            *count_blank_ends(rows),
            *pycorrector.count_characters(rows, positions),
        )

    def report(self, sums: Totals) -> Report:
        """Return the numbers of every member of the family."""
        detection, correction = map(_to_percent, pycorrector.report_characters(sums))
        return {
            "paddle_sighan_evaluate": _report_paddle(sums),
            "realise": _find_read_error(sums) or _report_realise(sums, "plain_"),
            "realise_remove_de": _find_read_error(sums, "no_de_")
            or _report_realise(sums, "no_de_"),
            "scope": _find_read_error(sums) or _report_scope(sums),
            "cltc_sent": _find_read_error(sums) or _report_cltc(sums),
            "cltc_char": {"Detection": detection, "Correction": correction},
        }
