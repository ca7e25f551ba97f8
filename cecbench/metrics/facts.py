"""Policies, positions and behaviour of a scanned block, computed from its facts."""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.base import Flags, columns
from cecbench.metrics.positions import BoolArray, IntArray, Positions
from cecbench.metrics.scan import Scan

#: Strings of equal length that differ in at most this many places are that many edits apart.
_PLAIN_DISTANCE = 2


def lengths_differ(block: Scan) -> bool:
    """Return whether the three strings of some row have different lengths."""
    target, prediction = _same_length(block)
    return not bool((target & prediction).all())


def under_policy(block: Scan, policy: str) -> tuple[Positions, Flags]:
    """Return positions and whole-string comparisons of the rows that a policy keeps.

    The policies are those of `apply_policy`: `revert` leaves out rows whose target has another
    length and puts the source in place of a prediction of another length, `drop` leaves out both,
    `strict` keeps every row.
    """
    target, prediction = _same_length(block)
    kept: BoolArray = np.ones(len(block), dtype=np.bool_)
    gold, changed, detected, corrected = (
        block.column(name).astype(np.int64) for name in ("gold", "changed", "detected", "corrected")
    )
    error, touched, wrong = (
        block.column(name).astype(np.bool_) for name in ("error", "touched", "wrong")
    )
    if policy == "revert":
        kept = target
        gold = block.column("gold_alone").astype(np.int64)  # the source replaces the prediction
        changed, detected, corrected = (n * prediction for n in (changed, detected, corrected))
        touched, wrong = touched & prediction, np.where(prediction, wrong, error)
    elif policy == "drop":
        kept = target & prediction
    where = Positions(gold[kept], changed[kept], detected[kept], corrected[kept])
    return where, (error[kept], touched[kept], ~wrong[kept])


def behaviour_of(block: Scan) -> IntArray:
    """Return what `behaviour.count` returns for the block's rows."""
    clean, touched = block.column("error") == 0, block.column("touched") == 1
    chars = block.column("source_chars").astype(np.int64)
    answer = block.column("prediction_chars")
    edits = block.column("changed") * (clean & touched)
    alike = (chars == answer) & (block.column("changed") <= _PLAIN_DISTANCE)
    for index in np.flatnonzero(clean & touched & ~alike).tolist():
        source, _, prediction = block.texts(index)
        edits[index] = Levenshtein.distance(source, prediction)
    return columns(
        np.ones(len(block), dtype=np.int64),
        clean,
        clean & touched,
        chars * clean,
        edits.astype(np.int64),
        chars != answer,
        ~touched,
        answer == 0,
    )


def _same_length(block: Scan) -> tuple[BoolArray, BoolArray]:
    """Return per row: whether the target, and whether the prediction, has the source's length."""
    source = block.column("source_chars")
    return block.column("target_chars") == source, block.column("prediction_chars") == source
