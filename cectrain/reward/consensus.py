# ruff: noqa: N802, N806 - axes are in the names
"""The consensus term: how near a candidate is to the centroid of its group's largest cluster."""

from __future__ import annotations

import numpy as np

from cectrain.reward import cluster
from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray
from cectrain.reward.pair import clipped
from cectrain.reward.term import Term


def consensus_P_L(batch: Batch) -> FloatArray:
    """Return r_cons of each candidate; 0 for a group without a cluster (docs/paper.md row 19)."""
    embeddings, members_P_L = batch.vectors[0], batch.members_P_L
    units = cluster.unit(embeddings)
    raw = batch.config.centroid == "raw"
    summed = np.asarray(embeddings, np.float64) if raw else units
    # A cosine does not depend on scale: the sum serves as the mean.
    centroid_P_D = cluster.unit(np.einsum("pl,pld->pd", members_P_L.astype(np.float64), summed))
    term = clipped(np.einsum("pld,pd->pl", units, centroid_P_D), batch.config.beta)
    return np.where(members_P_L.any(axis=1, keepdims=True), term, 0.0) * batch.counted_P_L


def alpha_star(tau: float, beta: float) -> float:
    """Return α* = (1 − τ) / ((1 − τ) + (1 − β)); above it a lone correct candidate beats copies.

    Beside a cluster of copies of the erroneous source at cosine c, the correct candidate earns
    α + (1 − α)(c − β)/(1 − β) and a copy α(c − τ)/(1 − τ) + (1 − α). The difference is
    (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)]: its sign does not depend on c. (Both terms above 0, and
    the correct candidate outside the cluster of the copies.)

    >>> round(alpha_star(0.70, 0.75), 3)  # the paper's constants; its α is 0.5
    0.545
    """
    return (1 - tau) / ((1 - tau) + (1 - beta))


def _figures(batch: Batch) -> dict[str, float]:
    members_P_L = batch.members_P_L
    return {
        "cluster_share": float(members_P_L.mean()),
        "no_cluster": float((~members_P_L.any(axis=1)).mean()),
    }


CONSENSUS = Term(
    "consensus",
    consensus_P_L,
    lambda config: 1 - config.alpha,
    _figures,
    ("cluster_share", "no_cluster"),
)
