# ruff: noqa: N802, N803 - axes are in the names
"""The edit term: how many of the source's errors a candidate corrects, by Levenshtein distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray
from cectrain.reward.term import Term


def edit_rewards(
    sources: Sequence[str], targets: Sequence[str], candidates_P_L: Sequence[Sequence[str]]
) -> FloatArray:
    """Return max(0, 1 − d(ŷ, y) / max(1, d(x, y))), shape [P, L], d the Levenshtein distance.

    1 for the reference, 0 for a copy of an erroneous source and for anything farther away.

    >>> edit_rewards(["他己经来啦"], ["他已经来了"], [["他已经来了", "他已经来啦", "他己经来啦"]])
    array([[1. , 0.5, 0. ]])
    """
    wrong = np.array(
        [
            [Levenshtein.distance(candidate, target) for candidate in group]
            for target, group in zip(targets, candidates_P_L, strict=True)
        ],
        dtype=np.float64,
    )
    before = [Levenshtein.distance(x, y) for x, y in zip(sources, targets, strict=True)]
    mended: FloatArray = np.maximum(0.0, 1.0 - wrong / np.maximum(1.0, np.array(before))[:, None])
    return mended


def edit_P_L(batch: Batch) -> FloatArray:
    """Return r_edit of each candidate."""
    return edit_rewards(batch.sources, batch.targets, batch.candidates_P_L)


EDIT = Term("edit", edit_P_L)
