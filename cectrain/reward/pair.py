# ruff: noqa: N802 - axes are in the names
"""The pair term: how near a candidate's embedding is to its reference's."""

from __future__ import annotations

import numpy as np

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray
from cectrain.reward.term import Term


def clipped(cosines: FloatArray, threshold: float) -> FloatArray:
    """Return max(0, (cos − t) / (1 − t)): eq. r_pair with t = τ, eq. r_cons with t = β.

    >>> clipped(np.array([1.0, 0.85, 0.2]), 0.7).round(3).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.maximum(0.0, (cosines - threshold) / (1.0 - threshold))


def pair_P_L(batch: Batch) -> FloatArray:
    """Return r_pair of each candidate."""
    return clipped(batch.cosines_P_L, batch.tau) * batch.counted_P_L


def _figures(batch: Batch) -> dict[str, float]:
    return {"cosine": float(batch.cosines_P_L.mean()), "tau": batch.tau}


PAIR = Term("pair", pair_P_L, lambda config: config.alpha, _figures, ("cosine", "tau"))
