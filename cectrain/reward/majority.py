# ruff: noqa: N802, N803 - axes are in the names
"""The majority vote of TTRL (Zuo et al. 2025), a reward without reference and encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray
from cectrain.reward.term import Term


def majority_rewards(
    candidates_P_L: Sequence[Sequence[str]], min_samples: int = 2, ties: str = "first"
) -> FloatArray:
    """Return 1 for candidates equal to their group's most frequent text, else 0, shape [P, L].

    A text needs `min_samples` votes. With equal votes, `ties = "none"` rewards nobody, any other
    rule the text that came first. Empty candidates have no vote.

    >>> majority_rewards([["好", "坏", "好", ""]])
    array([[1., 0., 1., 0.]])
    """
    rows = []
    for group in candidates_P_L:
        votes = Counter(text for text in group if text).most_common(2)
        tied = len(votes) > 1 and votes[0][1] == votes[1][1]
        won = bool(votes) and votes[0][1] >= min_samples and not (tied and ties == "none")
        rows.append([float(won and text == votes[0][0]) for text in group])
    return np.array(rows, dtype=np.float64)


def majority_P_L(batch: Batch) -> FloatArray:
    """Return the vote of each candidate."""
    return majority_rewards(batch.candidates_P_L, batch.config.min_samples, batch.config.ties)


MAJORITY = Term("majority", majority_P_L, lambda _config: 1.0)
