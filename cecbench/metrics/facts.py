"""From the facts of a scanned block to what policies, scorers and rates of behaviour need."""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.base import Flags, columns
from cecbench.metrics.positions import BoolArray, IntArray, Positions
from cecbench.metrics.scan import Scan

#: Two strings of one length that differ in so few places are that many edits apart.
_PLAIN_DISTANCE = 2


def lengths_differ(block: Scan) -> bool:
    """Whether some row's source, target and prediction are not of one length."""
    target, prediction = _same_length(block)
    return not bool((target & prediction).all())


def under_policy(block: Scan, policy: str) -> tuple[Positions, Flags]:
    """Positions and whole-string comparisons of the rows that a policy keeps.

    As `apply_policy` does: `revert` leaves rows of another target length out and takes predictions
    of another length for the source, `drop` leaves both out, `strict` takes every row as it is.
    """
    target, prediction = _same_length(block)
    kept: BoolArray = np.ones(len(block), dtype=np.bool_)
    gold, changed, found, fixed = (
        block.column(name).astype(np.int64) for name in ("gold", "changed", "found", "fixed")
    )
    error, touched, wrong = (
        block.column(name).astype(np.bool_) for name in ("error", "touched", "wrong")
    )
    if policy == "revert":
        kept = target
        gold = block.column("gold_alone").astype(np.int64)  # the source stands for the prediction
        changed, found, fixed = changed * prediction, found * prediction, fixed * prediction
        touched, wrong = touched & prediction, np.where(prediction, wrong, error)
    elif policy == "drop":
        kept = target & prediction
    where = Positions(gold[kept], changed[kept], found[kept], fixed[kept])
    return where, (error[kept], touched[kept], ~wrong[kept])


def behaviour_of(block: Scan) -> IntArray:
    """Counts per row, as `behaviour.count` gives them."""
    clean, touched = block.column("error") == 0, block.column("touched") == 1
    chars = block.column("source_chars").astype(np.int64)
    answer = block.column("prediction_chars")
    edits = block.column("changed") * (clean & touched)
    alike = (chars == answer) & (block.column("changed") <= _PLAIN_DISTANCE)
    for index in np.flatnonzero(clean & touched & ~alike).tolist():
        source, _, prediction = block.texts(index)
        edits[index] = Levenshtein.distance(source, prediction)
    return columns(
        np.ones(len(block), dtype=np.int64), clean, clean & touched, chars * clean,
        edits.astype(np.int64), chars != answer, ~touched, answer == 0,
    )  # fmt: skip


def _same_length(block: Scan) -> tuple[BoolArray, BoolArray]:
    """Per row: whether the target, and whether the prediction, is of the source's length."""
    source = block.column("source_chars")
    return block.column("target_chars") == source, block.column("prediction_chars") == source
