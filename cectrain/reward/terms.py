# ruff: noqa: N803, N806, N815 - axes are in the names
"""The terms of the reward as pure functions, their table, and the total reward of a batch.

Axes: P sources, L candidates of each. A term of your own is a function and an entry here, a weight
in config.py and a row in docs/reference/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein

from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch, FloatArray, Term, to_unit
from cectrain.reward.function import FUNCTION, FUNCTIONS


def clip_cosines(cosines: FloatArray, threshold: float) -> FloatArray:
    """Return max(0, (cos − t) / (1 − t)): eq. r_pair with t = τ, eq. r_cons with t = β."""
    return np.maximum(0.0, (cosines - threshold) / (1.0 - threshold))


PAIR = Term(
    name="pair",
    compute=lambda batch: clip_cosines(batch.cosines_P_L, batch.config.tau) * batch.counted_P_L,
    share=lambda config: config.alpha,
    figures=lambda batch: {"cosine": float(batch.cosines_P_L.mean())},
    more_columns=("cosine",),
)


def compute_consensus_rewards(batch: Batch) -> FloatArray:
    """Return r_cons of each candidate; 0 for a group without a cluster (docs/paper.md row 19)."""
    units, members_P_L = to_unit(batch.embeddings_P_L_D), batch.members_P_L
    # A cosine does not depend on scale: the sum serves as the mean.
    centroid_P_D = to_unit(np.einsum("pl,pld->pd", members_P_L.astype(np.float64), units))
    term = clip_cosines(np.einsum("pld,pd->pl", units, centroid_P_D), batch.config.beta)
    return np.where(members_P_L.any(axis=1, keepdims=True), term, 0.0) * batch.counted_P_L


def find_alpha_star(tau: float, beta: float) -> float:
    """Return α* = (1 − τ) / ((1 − τ) + (1 − β)); above it a lone correct candidate beats copies.

    Beside a cluster of copies of the erroneous source at cosine c, the correct candidate earns
    α + (1 − α)(c − β)/(1 − β) and a copy α(c − τ)/(1 − τ) + (1 − α). The difference is
    (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)]: its sign does not depend on c. (Both terms above 0, and
    the correct candidate outside the cluster of the copies.)

    >>> round(find_alpha_star(0.70, 0.75), 3)  # the paper's constants; its α is 0.5
    0.545
    """
    return (1 - tau) / ((1 - tau) + (1 - beta))


def _measure_clusters(batch: Batch) -> dict[str, float]:
    """Return the share of candidates in a largest cluster, and of groups without one."""
    members_P_L = batch.members_P_L
    return {
        "cluster_share": float(members_P_L.mean()),
        "no_cluster": float((~members_P_L.any(axis=1)).mean()),
    }


CONSENSUS = Term(
    name="consensus",
    compute=compute_consensus_rewards,
    share=lambda config: 1 - config.alpha,
    figures=_measure_clusters,
    more_columns=("cluster_share", "no_cluster"),
)


def useful_rewards(
    sources: Sequence[str], targets: Sequence[str], candidates_P_L: Sequence[Sequence[str]]
) -> FloatArray:
    """Return max(0, (d(x, y) − d(ŷ, y)) / d(x, ŷ)), shape [P, L], d the Levenshtein distance.

    It is the share of the edits made that bring the text nearer to the reference, less that of
    edits that lead away from it. A candidate without edits earns 1 where its source has no error,
    else 0. This term is ours: the paper's reward has none.
    """
    before_P_1 = _measure_edit_distances(sources, [[target] for target in targets])
    after_P_L = _measure_edit_distances(targets, candidates_P_L)
    made_P_L = _measure_edit_distances(sources, candidates_P_L)
    shares_P_L = np.maximum(0.0, before_P_1 - after_P_L) / np.maximum(1.0, made_P_L)
    return np.where(made_P_L > 0, shares_P_L, before_P_1 == 0)


def _measure_edit_distances(
    texts: Sequence[str], groups_P_L: Sequence[Sequence[str]]
) -> FloatArray:
    """Return the Levenshtein distance of each text to the texts of its group, shape [P, L]."""
    return np.array(
        [
            [Levenshtein.distance(text, candidate) for candidate in group]
            for text, group in zip(texts, groups_P_L, strict=True)
        ],
        dtype=np.float64,
    )


USEFUL = Term(
    "useful", lambda batch: useful_rewards(batch.sources, batch.targets, batch.candidates_P_L)
)


def add_unchanged_reward(rewards_P_L: FloatArray, batch: Batch, unchanged: float) -> FloatArray:
    """Return R, but `unchanged` for each candidate that leaves an error as it is, shape [P, L].

    If R is 1 for the reference and 0 otherwise, a wrong change costs no more than none, and a
    change is always worth trying. Sentence-level F1 = 2 correct / (changed + erroneous) gives its
    cost: maximising F1 is equivalent to maximising 2 correct − F changed at the optimum F
    (Dinkelbach 1967). Scaled: right 1, unchanged F/2, wrong 0. Clean sources keep R.
    """
    copied = [
        [candidate == source != target for candidate in group]
        for source, target, group in zip(
            batch.sources, batch.targets, batch.candidates_P_L, strict=True
        )
    ]
    return np.where(np.array(copied), unchanged, rewards_P_L)


#: the terms of the paper's reward, whose weights sum to 1
BASE: tuple[Term, ...] = (PAIR, CONSENSUS)
#: terms that take a share of any reward: `reward.NAME_weight`, 0 by default
ADDITIONAL: tuple[Term, ...] = (USEFUL,)
TERMS = (*BASE, FUNCTION, *ADDITIONAL, FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards R of a batch [P, L], and the values [P, L] of each term before weighting."""

    total_P_L: FloatArray
    terms: Mapping[Term, FloatArray]
    batch: Batch

    def make_figures(self) -> dict[str, float]:
        """Return the figures that metrics.jsonl has of the terms."""
        figures: dict[str, float] = {}
        for term, values in self.terms.items():
            figures |= {f"reward_{term.name}": float(values.mean()), **term.figures(self.batch)}
        return figures


def total_reward(batch: Batch) -> Rewards:
    """Return R = (1 − Σw) Σ base terms + Σ w · additional terms, unchanged errors set apart.

    The base is α r_pair + (1 − α) r_cons (paper eq. final_reward), or a function of the user's
    own, which has no reward of unchanged errors: it may be one that must not see the target.
    Training and diagnosis both take their rewards from here.
    """
    config = batch.config
    base = (FUNCTION,) if config.reward else BASE
    values = {term: term.compute(batch) for term in base}
    total_P_L = _sum_weighted(values, config)
    additional = {t: t.compute(batch) for t in (*ADDITIONAL, FUNCTIONS) if t.weight(config)}
    if additional:
        total_P_L = (1 - config.additional_weight) * total_P_L + _sum_weighted(additional, config)
    if config.unchanged is not None and config.is_consensus:
        total_P_L = add_unchanged_reward(total_P_L, batch, config.unchanged)
    return Rewards(total_P_L, values | additional, batch)


def _sum_weighted(values: Mapping[Term, FloatArray], config: RewardConfig) -> FloatArray:
    """Return the sum of the values [P, L] of terms, by their weights."""
    weighted = [term.weight(config) * values_P_L for term, values_P_L in values.items()]
    return np.asarray(np.sum(weighted, axis=0))
