# ruff: noqa: N803, N806 - axes are in the names
"""DBSCAN over many small groups of candidates at once, with scikit-learn's labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NOISE = -1
LARGEST_GROUP = 64  # L; memory grows with L²


def unit(vectors: npt.NDArray[np.floating]) -> FloatArray:
    """Return the vectors scaled to length 1 along the last axis; a zero vector stays zero."""
    wide = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(length == 0, 1.0, length)


def distances(embeddings_P_L_D: npt.NDArray[np.floating]) -> FloatArray:
    """Return 1 − cos within each group, [P, L, L], symmetric and 0 on the diagonal.

    The paper does not name its metric (docs/paper.md row 19).
    """
    units = unit(embeddings_P_L_D)
    cosines = np.clip(units @ units.swapaxes(-1, -2), -1.0, 1.0)
    cosines = (cosines + cosines.swapaxes(-1, -2)) / 2
    apart: FloatArray = 1.0 - cosines
    size = apart.shape[-1]
    apart[..., np.arange(size), np.arange(size)] = 0.0
    return apart


def dbscan(
    distances_P_L_L: FloatArray, radius: float, min_samples: int, valid_P_L: BoolArray | None = None
) -> IntArray:
    """Return the cluster of each candidate, shape [P, L]; −1 is noise.

    A candidate is a core if at least `min_samples` candidates, itself included, are within
    `radius` (inclusive). Connected cores form a cluster; clusters are numbered by their first
    core. A border candidate joins the lowest-numbered cluster that has a core within `radius`.
    Candidates that are not `valid` are noise and have no neighbours.

    >>> import numpy as np
    >>> line = np.array([0.0, 0.1, 5.0, 0.2])
    >>> dbscan(abs(line[None, :, None] - line[None, None, :]), 0.15, 2).tolist()
    [[0, 0, -1, 0]]
    """
    groups, size = distances_P_L_L.shape[:2]
    near = distances_P_L_L <= radius
    if valid_P_L is not None:
        near = near & valid_P_L[:, :, None] & valid_P_L[:, None, :]
    core = near.sum(axis=2) >= min_samples
    linked = near & core[:, :, None] & core[:, None, :]
    # Each core takes the lowest index among the cores linked with it, until nothing changes.
    first = np.where(core, np.arange(size), size)
    while True:
        lower = np.where(linked, first[:, None, :], size).min(axis=2, initial=size)
        lower = np.minimum(first, lower)
        if np.array_equal(lower, first):
            break
        first = lower
    reached = np.where(near & core[:, None, :], first[:, None, :], size).min(axis=2, initial=size)
    first = np.where(core, first, reached)
    # A cluster's lowest core is its root; clusters are numbered in the order of their roots.
    is_root = core & (first == np.arange(size))
    number = np.concatenate([np.cumsum(is_root, axis=1) - 1, np.full((groups, 1), NOISE)], axis=1)
    return np.take_along_axis(number, first, axis=1).astype(np.int64)


def largest_cluster(labels_P_L: IntArray, embeddings_P_L_D: npt.NDArray[np.floating]) -> BoolArray:
    """Return the members of each group's largest cluster, [P, L] bool; all false without one.

    Of largest clusters of one size it is the one whose unit vectors have the longest mean, then
    the one with the lower number.
    """
    size = labels_P_L.shape[1]
    member_P_C_L = labels_P_L[:, None, :] == np.arange(size)[None, :, None]
    counts_P_C = member_P_C_L.sum(axis=2)
    most = counts_P_C.max(axis=1, initial=0)
    is_best = (counts_P_C == most[:, None]) & (counts_P_C > 0)
    mean = member_P_C_L.astype(np.float64) @ unit(embeddings_P_L_D)
    mean /= np.maximum(counts_P_C, 1)[:, :, None]
    # Rounded, so that the order of summation does not break a tie.
    score = is_best * (1.0 + np.round(np.linalg.norm(mean, axis=2), 9))
    chosen = score.argmax(axis=1)
    exists = is_best.any(axis=1)
    members = np.take_along_axis(member_P_C_L, chosen[:, None, None], axis=1)[:, 0]
    return np.asarray(members & exists[:, None], dtype=np.bool_)
