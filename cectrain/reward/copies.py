# ruff: noqa: N803 - axes are in the names
"""The reward of a copy of an erroneous source, which makes a wrong change cost something."""

from __future__ import annotations

import numpy as np

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray


def with_copy_reward(rewards_P_L: FloatArray, batch: Batch, copy: float) -> FloatArray:
    """Return R, but `copy` for each candidate that repeats an erroneous source, shape [P, L].

    If R is 1 for the reference and 0 otherwise, a wrong change costs no more than a copy, and a
    change is always worth trying. Its due cost follows from sentence-level
    F1 = 2 correct / (changed + erroneous): where F1 has its maximum F, 2 correct − F changed has
    its own (Dinkelbach 1967), which gives a right change 2 − F, a wrong one −F and a copy 0; that
    is, after scaling, 1, 0 and copy = F/2. Copies of clean sources keep R.
    """
    copied = [
        [candidate == source != target for candidate in group]
        for source, target, group in zip(
            batch.sources, batch.targets, batch.candidates_P_L, strict=True
        )
    ]
    return np.where(np.array(copied), copy, rewards_P_L)
