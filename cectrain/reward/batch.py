# ruff: noqa: N802, N803, N806, N815 - axes are in the names
"""The groups of candidates that are rewarded together, their clusters by DBSCAN with the labels of
scikit-learn, and the type of a term that rewards them.

Axes: P sources, L candidates of each, C clusters of these, D components of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cectrain.config import RewardConfig

Vectors = npt.NDArray[np.floating]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
NOISE = -1


@dataclass(frozen=True)
class Batch:
    """P groups of L candidates with sources, targets and, for a reward with cosines, embeddings."""

    config: RewardConfig
    sources: Sequence[str]
    targets: Sequence[str]
    candidates_P_L: Sequence[Sequence[str]]
    embeddings_P_L_D: Vectors = field(default_factory=lambda: np.zeros(0))
    references_P_D: Vectors = field(default_factory=lambda: np.zeros(0))  # of the targets

    @cached_property
    def counted_P_L(self) -> BoolArray:
        """Whether each candidate can earn anything: empty ones cannot, and are in no cluster."""
        return np.array([[bool(text) for text in group] for group in self.candidates_P_L])

    @cached_property
    def cosines_P_L(self) -> FloatArray:
        """The cosine of each candidate to its reference."""
        units_P_L_D, references_P_D = map(to_unit, (self.embeddings_P_L_D, self.references_P_D))
        cosines: FloatArray = np.einsum("pld,pd->pl", units_P_L_D, references_P_D)
        return cosines

    @cached_property
    def labels_P_L(self) -> IntArray:
        """The DBSCAN cluster of each candidate in its group; −1 is noise."""
        distances_P_L_L = measure_distances(self.embeddings_P_L_D)
        return dbscan(distances_P_L_L, self.config.epsilon, self.counted_P_L)

    @cached_property
    def members_P_L(self) -> BoolArray:
        """Whether each candidate belongs to the largest cluster of its group."""
        return find_largest_cluster(self.labels_P_L, self.embeddings_P_L_D)


def to_unit(vectors: Vectors) -> FloatArray:
    """Return the vectors scaled to length 1 along the last axis; a zero vector stays zero."""
    wide = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(length == 0, 1.0, length)


def measure_distances(embeddings_P_L_D: Vectors) -> FloatArray:
    """Return 1 − cos within each group, [P, L, L], symmetric and 0 on the diagonal.

    The paper does not name its metric (docs/paper.md row 19).
    """
    units = to_unit(embeddings_P_L_D)
    cosines = np.clip(units @ units.swapaxes(-1, -2), -1.0, 1.0)
    cosines = (cosines + cosines.swapaxes(-1, -2)) / 2  # symmetric to the last bit
    apart: FloatArray = 1.0 - cosines
    size = apart.shape[-1]
    apart[..., np.arange(size), np.arange(size)] = 0.0
    return apart


def dbscan(distances_P_L_L: FloatArray, radius: float, valid_P_L: BoolArray) -> IntArray:
    """Return the cluster of each candidate, shape [P, L]; −1 is noise.

    Candidates within `radius` (inclusive) of each other are linked. Two or more that links connect
    form a cluster; clusters are numbered by their first candidate. Candidates that are not `valid`
    are noise and have no neighbours. It is DBSCAN with two samples, so that no candidate is at a
    border: the paper states no number, and with 5, scikit-learn's default, four form no cluster.
    """
    size = distances_P_L_L.shape[1]
    linked = (distances_P_L_L <= radius) & valid_P_L[:, :, None] & valid_P_L[:, None, :]
    clustered_P_L = linked.sum(axis=2) >= 2
    # The first member of each candidate's cluster: it takes the lowest index among those linked
    # with it, until nothing changes.
    first_P_L = np.broadcast_to(np.arange(size), linked.shape[:2])
    while True:
        lower_P_L = np.where(linked, first_P_L[:, None, :], size).min(axis=2, initial=size)
        lower_P_L = np.minimum(first_P_L, lower_P_L)
        if np.array_equal(lower_P_L, first_P_L):
            break
        first_P_L = lower_P_L
    opens_cluster_P_L = clustered_P_L & (first_P_L == np.arange(size))
    numbers_P_L = np.cumsum(opens_cluster_P_L, axis=1) - 1
    return np.where(clustered_P_L, np.take_along_axis(numbers_P_L, first_P_L, axis=1), NOISE)


def find_largest_cluster(labels_P_L: IntArray, embeddings_P_L_D: Vectors) -> BoolArray:
    """Return the members of each group's largest cluster, [P, L] bool; all false without one.

    Of largest clusters of one size it is the one whose unit vectors have the longest mean, then the
    one with the lower number.
    """
    size = labels_P_L.shape[1]  # C, the most clusters that there can be; noise has no number
    member_P_C_L = labels_P_L[:, None, :] == np.arange(size)[None, :, None]
    counts_P_C = member_P_C_L.sum(axis=2)
    most = counts_P_C.max(axis=1, initial=0)
    is_best = (counts_P_C == most[:, None]) & (counts_P_C > 0)
    mean = member_P_C_L.astype(np.float64) @ to_unit(embeddings_P_L_D)
    mean /= np.maximum(counts_P_C, 1)[:, :, None]
    # Above the 0 of smaller clusters; rounded, so that the order of summation does not break a tie.
    score = is_best * (1.0 + np.round(np.linalg.norm(mean, axis=2), 9))
    chosen = score.argmax(axis=1)
    exists = is_best.any(axis=1)
    members = np.take_along_axis(member_P_C_L, chosen[:, None, None], axis=1)[:, 0]
    return np.asarray(members & exists[:, None], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the reward.

    `name` gives `reward_NAME` in metrics.jsonl. `compute` returns values 0–1 of shape [P, L].
    `share` reads the term's share from the configuration; by default it is `reward.NAME_weight`.
    `figures` returns further numbers for metrics.jsonl, under the names `more_columns`.
    """

    name: str
    compute: Callable[[Batch], FloatArray]
    share: Callable[[RewardConfig], float] | None = None
    figures: Callable[[Batch], Mapping[str, float]] = lambda _batch: {}

    more_columns: tuple[str, ...] = ()

    def weight(self, config: RewardConfig) -> float:
        """Return the term's share of the reward, a fraction 0–1."""
        if self.share is not None:
            return self.share(config)
        return float(getattr(config, f"{self.name}_weight"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in metrics.jsonl that the term owns."""
        return (f"reward_{self.name}", *self.more_columns)
