# ruff: noqa: N803, N806 - axes stand in the names
"""The cluster-consensus reward and its relatives: pure functions on whole groups.

Axes: P sources, L candidates of each, D components of an embedding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from cecdata.common.errors import UsageError, did_you_mean
from cectrain.reward import cluster
from cectrain.reward.cluster import BoolArray, FloatArray, IntArray

CENTROIDS = ("normalised", "raw")
KINDS = ("consensus", "majority")


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Constants of the reward. Defaults are the paper's where it names them (tab:hparams)."""

    kind: str = "consensus"  # or "majority": TTRL's vote, without reference and encoder
    alpha: float = 0.5  # weight of the pairwise term, 0–1
    tau: float = 0.70  # cosine to the reference that earns nothing
    beta: float = 0.75  # cosine to the centroid that earns nothing
    epsilon: float = 0.10  # DBSCAN's radius, in the metric's unit
    metric: str = "cosine"  # or "euclidean"; not stated in the paper (docs/paper.md row 19)
    min_samples: int = 2  # scikit-learn's default, 5, finds no cluster among 4 candidates
    centroid: str = "normalised"  # mean of the unit vectors, or "raw" of the vectors as they are
    ties: str = "tightest"  # clusters of one size: or "first", "none"
    empty_is_noise: bool = True  # an empty candidate earns 0 and joins no cluster
    tau_quantile: float | None = None  # τ = this quantile of the batch's cosines to the reference
    edit_weight: float = 0.0  # share of the edit-level term, 0–1
    copy: float | None = None  # what a copy of an erroneous source earns, 0–1; unset: R as it is

    def __post_init__(self) -> None:
        _known("reward", self.kind, KINDS)
        _known("cluster metric", self.metric, cluster.METRICS)
        _known("centroid", self.centroid, CENTROIDS)
        _known("rule for ties", self.ties, cluster.TIES)
        for name in ("alpha", "edit_weight", "copy"):
            value = getattr(self, name)
            _check(value is None or 0 <= value <= 1, name, value, "a fraction 0–1")
        for name in ("tau", "beta"):
            _check(-1 <= getattr(self, name) < 1, name, getattr(self, name), "a cosine below 1")
        _check(self.epsilon >= 0, "epsilon", self.epsilon, "at least 0")
        _check(self.min_samples >= 1, "min_samples", self.min_samples, "at least 1")
        quantile = self.tau_quantile
        _check(
            quantile is None or 0 <= quantile <= 1, "tau_quantile", quantile, "a fraction, or unset"
        )

    def tau_words(self) -> str:
        """τ, or the quantile that it is."""
        quantile = self.tau_quantile
        return f"{self.tau:g}" if quantile is None else f"{quantile:g} quantile"

    def words(self) -> str:
        """The constants in a line.

        >>> RewardConfig(edit_weight=0.2, copy=0.3).words()
        'α 0.5, τ 0.7, β 0.75, edit term 0.2, a copy 0.3'
        """
        edits = f", edit term {self.edit_weight:g}" if self.edit_weight else ""
        copies = "" if self.copy is None else f", a copy {self.copy:g}"
        return f"α {self.alpha:g}, τ {self.tau_words()}, β {self.beta:g}{edits}{copies}"


@dataclass(frozen=True, slots=True)
class Rewards:
    """What a batch of groups earned; every array has shape [P, L].

    rewards: R. pair, consensus: the two terms before weighting. cosines: cos(e(ŷ), e(y)).
    labels: clusters, −1 is noise. members: who belongs to the largest cluster. tau: as used.
    edits: the edit term, None where it has no weight.
    """

    rewards: FloatArray
    pair: FloatArray
    consensus: FloatArray
    cosines: FloatArray
    labels: IntArray
    members: BoolArray
    tau: float
    edits: FloatArray | None = None


def alpha_star(tau: float, beta: float) -> float:
    """α* = (1 − τ) / ((1 − τ) + (1 − β)); above it a lone correct candidate beats the copies.

    Beside a cluster of copies of the erroneous source at cosine c, the correct candidate earns
    α + (1 − α)(c − β)/(1 − β) and a copy α(c − τ)/(1 − τ) + (1 − α). The difference is
    (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)]: its sign does not depend on c. (Both terms above 0.)

    >>> round(alpha_star(0.70, 0.75), 3)  # the paper's constants; its α is 0.5
    0.545
    """
    return (1 - tau) / ((1 - tau) + (1 - beta))


def clipped(cosines: FloatArray, threshold: float) -> FloatArray:
    """max(0, (cos − t) / (1 − t)): eq. r_pair with τ, eq. r_cons with β.

    >>> import numpy as np
    >>> clipped(np.array([1.0, 0.85, 0.2]), 0.7).round(3).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.maximum(0.0, (cosines - threshold) / (1.0 - threshold))


def paid(
    embeddings_P_L_D: npt.NDArray[np.floating],
    references_P_D: npt.NDArray[np.floating],
    config: RewardConfig,
    sources: Sequence[str],
    targets: Sequence[str],
    candidates_P_L: Sequence[Sequence[str]],
) -> Rewards:
    """What training pays these candidates, all terms included; diagnosis judges the same."""
    empty = np.array([[not text for text in group] for group in candidates_P_L])
    found = group_rewards(embeddings_P_L_D, references_P_D, config, empty)
    rewards, edits = adjusted(found.rewards, config, sources, targets, candidates_P_L)
    return replace(found, rewards=rewards, edits=edits)


def adjusted(
    rewards_P_L: FloatArray,
    config: RewardConfig,
    sources: Sequence[str],
    targets: Sequence[str],
    candidates_P_L: Sequence[Sequence[str]],
) -> tuple[FloatArray, FloatArray | None]:
    """R of either kind with the edit term, then with what copies are to earn; and the edit term,
    None where it has no weight.
    """
    edits = None
    if config.edit_weight:
        edits = edit_rewards(sources, targets, candidates_P_L)
        rewards_P_L = with_edits(rewards_P_L, edits, config.edit_weight)
    if config.copy is not None:
        rewards_P_L = with_copies(rewards_P_L, sources, targets, candidates_P_L, config.copy)
    return rewards_P_L, edits


def group_rewards(
    embeddings_P_L_D: npt.NDArray[np.floating],
    references_P_D: npt.NDArray[np.floating],
    config: RewardConfig,
    empty_P_L: BoolArray | None = None,
) -> Rewards:
    """R = α r_pair + (1 − α) r_cons (paper eq. final_reward) for P groups of L candidates.

    r_pair compares with the reference; r_cons with the mean of the group's largest DBSCAN
    cluster, and is 0 for everybody where there is none (docs/paper.md row 19).
    """
    _check_shapes(embeddings_P_L_D, references_P_D)
    cosines = np.einsum("pld,pd->pl", cluster.unit(embeddings_P_L_D), cluster.unit(references_P_D))
    empty = np.zeros(cosines.shape, np.bool_) if empty_P_L is None else empty_P_L
    alive = ~empty if config.empty_is_noise else np.ones(cosines.shape, np.bool_)
    tau = config.tau
    if config.tau_quantile is not None:
        tau = tau_by_quantile(cosines[alive], config.tau_quantile)
    apart = cluster.distances(embeddings_P_L_D, config.metric)
    labels = cluster.dbscan(apart, config.epsilon, config.min_samples, alive)
    members = cluster.largest_cluster(labels, embeddings_P_L_D, config.ties)
    pair = clipped(cosines, tau) * alive
    consensus = consensus_term(embeddings_P_L_D, members, config) * alive
    rewards = config.alpha * pair + (1 - config.alpha) * consensus
    return Rewards(rewards, pair, consensus, cosines, labels, members, tau)


def consensus_term(
    embeddings_P_L_D: npt.NDArray[np.floating], members_P_L: BoolArray, config: RewardConfig
) -> FloatArray:
    """r_cons of every candidate, shape [P, L]: cosine to the centroid of its group's cluster."""
    units = cluster.unit(embeddings_P_L_D)
    summed = units if config.centroid == "normalised" else np.asarray(embeddings_P_L_D, np.float64)
    # Scale does not matter to a cosine: the sum stands for the mean.
    centroid_P_D = cluster.unit(np.einsum("pl,pld->pd", members_P_L.astype(np.float64), summed))
    term = clipped(np.einsum("pld,pd->pl", units, centroid_P_D), config.beta)
    return np.where(members_P_L.any(axis=1, keepdims=True), term, 0.0)


def tau_by_quantile(cosines: FloatArray, quantile: float) -> float:
    """The threshold below which the share `quantile` of these cosines lies; at most 0.999."""
    if cosines.size == 0:
        return 0.0
    return float(min(0.999, np.quantile(cosines, quantile)))


def edit_rewards(
    sources: Sequence[str], targets: Sequence[str], candidates_P_L: Sequence[Sequence[str]]
) -> FloatArray:
    """max(0, 1 − d(ŷ, y) / max(1, d(x, y))), shape [P, L], d the Levenshtein distance.

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
    kept: FloatArray = np.maximum(0.0, 1.0 - wrong / np.maximum(1.0, np.array(before))[:, None])
    return kept


def majority_rewards(
    candidates_P_L: Sequence[Sequence[str]], min_samples: int = 2, ties: str = "first"
) -> FloatArray:
    """1 for candidates that equal the group's most frequent text, else 0 (TTRL's vote), [P, L].

    A text needs `min_samples` votes. Equal votes: `none` rewards nobody, any other rule the text
    that came first. Empty candidates have no vote.

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


def with_edits(rewards_P_L: FloatArray, edits_P_L: FloatArray, weight: float) -> FloatArray:
    """(1 − w) R + w r_edit."""
    return (1 - weight) * rewards_P_L + weight * edits_P_L


def with_copies(
    rewards_P_L: FloatArray,
    sources: Sequence[str],
    targets: Sequence[str],
    candidates_P_L: Sequence[Sequence[str]],
    copy: float,
) -> FloatArray:
    """R, but `copy` for the copies of an erroneous source, shape [P, L].

    Where R is 1 for the reference and 0 for all else, a wrong change costs no more than a copy,
    and trying is always worth it. What it should cost follows from sentence-level
    F1 = 2 correct / (changed + erroneous): where it has its maximum F, 2 correct − F changed has
    its own (Dinkelbach 1967), which pays a right change 2 − F, a wrong one −F, a copy 0; that is,
    in another unit, 1, 0 and copy = F/2.

    >>> group = ["他已来", "他己来", "她己来"]
    >>> with_copies(np.array([[1.0, 0.9, 0.0]]), ["他己来"], ["他已来"], [group], 0.3)
    array([[1. , 0.3, 0. ]])
    """
    copied = [
        [candidate == source != target for candidate in group]
        for source, target, group in zip(sources, targets, candidates_P_L, strict=True)
    ]
    kept: FloatArray = np.where(np.array(copied), copy, rewards_P_L)
    return kept


def _check_shapes(
    embeddings_P_L_D: npt.NDArray[np.floating], references_P_D: npt.NDArray[np.floating]
) -> None:
    if embeddings_P_L_D.ndim != 3 or references_P_D.ndim != 2:
        raise UsageError("embeddings of shape [P, L, D] and references of shape [P, D] are wanted")
    groups, size, width = embeddings_P_L_D.shape
    if references_P_D.shape != (groups, width):
        raise UsageError(
            f"candidates have {groups} groups of {width} dimensions, references "
            f"{references_P_D.shape[0]} of {references_P_D.shape[1]}: one encoder must make both"
        )
    if size < 2:
        raise UsageError("L = 1: a group needs at least 2 candidates to have a consensus")


def _known(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UsageError(f"no {what} {name!r}; {did_you_mean(name, list(known))}")


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise UsageError(f"reward.{name} = {value!r}: {wanted} is wanted")
