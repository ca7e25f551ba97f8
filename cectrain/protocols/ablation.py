"""The reward's two terms apart (paper tab:reward_abl): α = 1, α = 0, both."""

from __future__ import annotations

from collections.abc import Sequence

from cectrain.protocols.study import Study, Variant
from cectrain.reward.config import RewardConfig

#: of the reward's tables: copies earn what the paper's equations give them
PLAIN = "reward.copy=null"
#: the paper's names (RLscore1, RLscore2, full) and ours for its repaired constants
ALPHAS = {"pairwise term only, α 1": 1.0, "consensus term only, α 0": 0.0, "both, α 0.5": 0.5}
CALIBRATED = "both, calibrated"
_PRINTED = RewardConfig()  # the paper's τ and β
_WORDS = (
    f"The first three have the paper's τ {_PRINTED.tau:.2f} and β {_PRINTED.beta:.2f}, the last "
    "one the diagnosis' τ, β and α. With the paper's, α 0.5 lies below α* = 0.545: a lone correct "
    "candidate beside copies earns less than a copy."
)


def given(alpha: float, tau: float, beta: float) -> tuple[str, ...]:
    """Settings under which the reward is the paper's equation with these constants."""
    constants = (f"reward.alpha={alpha}", f"reward.tau={tau}", f"reward.beta={beta}")
    return (PLAIN, 'constants="given"', "reward.tau_quantile=null", *constants)


def ablation(seeds: Sequence[int], benchmarks: Sequence[str]) -> Study:
    """Four variants: the paper's three with its τ and β, and the calibrated reward."""
    variants = [
        Variant(label, given(alpha, _PRINTED.tau, _PRINTED.beta)) for label, alpha in ALPHAS.items()
    ]
    variants.append(Variant(CALIBRATED, (PLAIN, 'constants="calibrated"')))
    return Study(
        "ablation",
        "Reward terms apart",
        tuple(variants),
        tuple(seeds),
        ("reward",),
        tuple(benchmarks),
        (_WORDS,),
    )
