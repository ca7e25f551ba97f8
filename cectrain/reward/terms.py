
# ruff: noqa: N806, N815 - axes are in the names
"""The table of reward terms, and the total reward of a batch.

Axes: P sources, L candidates of each. CONTRIBUTING.md says how to add a term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray
from cectrain.reward.consensus import CONSENSUS
from cectrain.reward.copies import with_copy_reward
from cectrain.reward.edit import EDIT
from cectrain.reward.function import FUNCTION, FUNCTIONS
from cectrain.reward.majority import MAJORITY
from cectrain.reward.pair import PAIR
from cectrain.reward.plausibility import PLAUSIBILITY
from cectrain.reward.term import Term

if TYPE_CHECKING:
    from cectrain.reward.config import RewardConfig

#: `reward.kind` → its terms, whose weights sum to 1
BASE: Mapping[str, tuple[Term, ...]] = MappingProxyType(
    {"consensus": (PAIR, CONSENSUS), "majority": (MAJORITY,)}
)
#: terms that take a share of any reward: `reward.NAME_weight`, 0 by default
ADDITIONAL: tuple[Term, ...] = (EDIT, PLAUSIBILITY)
KINDS = tuple(BASE)
_BASE_TERMS = (*(term for terms in BASE.values() for term in terms), FUNCTION)
TERMS = (*_BASE_TERMS, *ADDITIONAL, FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards R of a batch [P, L], and the values [P, L] of each term before weighting."""

    total_P_L: FloatArray
    terms: Mapping[Term, FloatArray]
    batch: Batch

    def figures(self) -> dict[str, float]:
        """Return the figures that metrics.jsonl has of the terms."""
        figures: dict[str, float] = {}
        for term, values in self.terms.items():
            figures |= {f"reward_{term.name}": float(values.mean()), **term.figures(self.batch)}
        return figures


def total_reward(batch: Batch) -> Rewards:
    """Return R = (1 − Σw) Σ base terms + Σ w · additional terms, then with the reward of copies.

    For `kind = "consensus"` the base is α r_pair + (1 − α) r_cons (paper eq. final_reward). A
    function of the user's own may be the base. Only the consensus reward has a reward of copies,
    because that looks at the target, which a vote must not see.
    Training and diagnosis both take their rewards from here.
    """
    config = batch.config
    base = (FUNCTION,) if config.reward else BASE[config.kind]
    values = {term: term.compute(batch) for term in base}
    total_P_L = _weighted_sum(values, config)
    additional = {t: t.compute(batch) for t in (*ADDITIONAL, FUNCTIONS) if t.weight(config)}
    if additional:
        total_P_L = (1 - additional_weight(config)) * total_P_L + _weighted_sum(additional, config)
    if config.copy is not None and config.is_consensus:
        total_P_L = with_copy_reward(total_P_L, batch, config.copy)
    return Rewards(total_P_L, values | additional, batch)


def additional_weight(config: RewardConfig) -> float:
    """Return the share of the reward that additional terms take together."""
    return sum(term.weight(config) for term in (*ADDITIONAL, FUNCTIONS))


def _weighted_sum(values: Mapping[Term, FloatArray], config: RewardConfig) -> FloatArray:
    weighted = [term.weight(config) * values_P_L for term, values_P_L in values.items()]
    return np.asarray(np.sum(weighted, axis=0))
