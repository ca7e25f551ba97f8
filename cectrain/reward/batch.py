# ruff: noqa: N802, N815 - axes are in the names
"""The groups of candidates that are rewarded together, and the type of a term that rewards them.

Axes: P sources, L candidates of each, D components of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cectrain.reward import cluster
from cectrain.reward.cluster import BoolArray, FloatArray, IntArray
from cectrain.reward.config import RewardConfig

Vectors = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Batch:
    """P groups of L candidates with sources, targets and, where the reward has any, embeddings."""

    config: RewardConfig
    sources: Sequence[str]
    targets: Sequence[str]
    candidates_P_L: Sequence[Sequence[str]]
    embeddings_P_L_D: Vectors | None = None
    references_P_D: Vectors | None = None

    @property
    def vectors(self) -> tuple[Vectors, Vectors]:
        """The embeddings [P, L, D] of the candidates and [P, D] of the references."""
        assert self.embeddings_P_L_D is not None
        assert self.references_P_D is not None
        return self.embeddings_P_L_D, self.references_P_D

    @cached_property
    def counted_P_L(self) -> BoolArray:
        """Whether each candidate can earn anything: empty ones cannot, and are in no cluster."""
        return np.array([[bool(text) for text in group] for group in self.candidates_P_L])

    @cached_property
    def cosines_P_L(self) -> FloatArray:
        """The cosine of each candidate to its reference."""
        embeddings, references = self.vectors
        cosines: FloatArray = np.einsum(
            "pld,pd->pl", cluster.unit(embeddings), cluster.unit(references)
        )
        return cosines

    @cached_property
    def labels_P_L(self) -> IntArray:
        """The DBSCAN cluster of each candidate in its group; −1 is noise."""
        config = self.config
        apart = cluster.distances(self.vectors[0])
        return cluster.dbscan(apart, config.epsilon, config.min_samples, self.counted_P_L)

    @cached_property
    def members_P_L(self) -> BoolArray:
        """Whether each candidate belongs to the largest cluster of its group."""
        return cluster.largest_cluster(self.labels_P_L, self.vectors[0])


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
