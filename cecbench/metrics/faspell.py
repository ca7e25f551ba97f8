"""FASPell's evaluation as pycorrector ported it, loose and strict, and its unit test's fractions.

The three strings are compared position by position to the end of the shortest. The character level
counts positions. At the sentence level, loose counts a sentence as detected if both sides have a
position, strict if their positions are equal. The accuracy of correction compares whole strings;
the accuracy of detection adds to the hits the sentences that have no position on either side and
whose prediction equals the target.
"""

from __future__ import annotations

from collections.abc import Sequence

from cecbench.metrics.base import Report, Totals, flags
from cecbench.metrics.positions import IntArray, Positions
from cecbench.metrics.predicted_words import prf
from cecbench.metrics.rows import Row

FIELDS = (
    "rows",
    "char_gold",
    "char_pred",
    "char_found",
    "char_fixed",
    "gold",
    "pred",
    "loose",
    "strict",
    "right",
    "clean_right",
    "equal",
)


def columns_of(rows: Sequence[Row], where: Positions) -> tuple[IntArray, ...]:
    """Return one array, shape (rows,), for each of FIELDS."""
    gold, pred = where.has_gold, where.has_changed
    equal = flags(rows)[2]
    parts = (
        where.gold >= 0,
        where.gold,
        where.changed,
        where.detected,
        where.corrected,
        gold,
        pred,
        gold & pred,
        pred & where.same_places,
        pred & where.all_right,
        ~gold & ~pred & equal,
        equal,
    )
    return tuple(part.astype("int64") for part in parts)


def report(sums: Totals, prefix: str) -> Report:
    """Return the port's numbers and the original test's fractions, each loose and strict."""
    at = {name: sums[f"{prefix}{name}"] for name in FIELDS}
    table: Report = {}
    for mode in ("loose", "strict"):
        table[f"faspell_port_{mode}"] = _port(at, mode)
        table[f"faspell_test_unit_{mode}"] = _fractions(at, mode)
    return table


def _port(at: Totals, mode: str) -> Report:
    rows = at["rows"]
    table: Report = {"all_sent_count": rows}
    for name, hits, pred, gold in (
        ("det_char", at["char_found"], at["char_pred"], at["char_gold"]),
        ("cor_char", at["char_fixed"], at["char_pred"], at["char_gold"]),
        ("det_sent", at[mode], at["pred"], at["gold"]),
        ("cor_sent", at["right"], at["pred"], at["gold"]),
    ):
        counts = (hits, pred - hits, gold - hits)
        table[f"{name}_counts"] = list(counts)
        for part, value in zip(("p", "r", "f1"), prf(*counts), strict=True):
            table[f"{name}_{part}"] = value
    table["det_sent_acc"] = (at[mode] + at["clean_right"]) / rows
    table["cor_sent_acc"] = at["equal"] / rows
    return table


def _fractions(at: Totals, mode: str) -> Report:
    rows = at["rows"]
    hits, alike = at[mode], at[mode] + at["clean_right"]
    return {
        "det": _unit(at, at["char_found"], hits, f"{alike}/{rows}"),
        "cor": _unit(at, at["char_fixed"], at["right"], f"{at['equal']}/{rows}"),
    }


def _unit(at: Totals, characters: int, sentences: int, accuracy: str) -> Report:
    return {
        "char_p": f"{characters}/{at['char_pred']}",
        "char_r": f"{characters}/{at['char_gold']}",
        "sent_p": f"{sentences}/{at['pred']}",
        "sent_r": f"{sentences}/{at['gold']}",
        "sent_a": accuracy,
    }
