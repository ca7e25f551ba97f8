"""The reward's two terms apart (paper tab:reward_abl): α = 1, α = 0, both."""

from __future__ import annotations

from collections.abc import Sequence

from cectrain.protocols.study import Study, Variant

#: of the reward's tables: copies earn what the paper's equations give them
PLAIN = "reward.copy=null"
#: the paper's names (RLscore1, RLscore2, full) and ours for its repaired constants
ALPHAS = {"pairwise term only, α 1": 1.0, "consensus term only, α 0": 0.0, "both, α 0.5": 0.5}
CALIBRATED = "both, calibrated"
_WORDS = (
    "The first three have the recipe's τ and β, the last one the diagnosis' τ, β and α. With τ "
    "0.70 and β 0.75, α 0.5 lies below α* = 0.545: a lone correct candidate beside copies earns "
    "less than a copy."
)


def ablation(seeds: Sequence[int], benchmarks: Sequence[str]) -> Study:
    """Four variants: the paper's three with its other constants, and the calibrated reward."""
    variants = [
        Variant(label, (PLAIN, 'constants="given"', f"reward.alpha={alpha}"))
        for label, alpha in ALPHAS.items()
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
