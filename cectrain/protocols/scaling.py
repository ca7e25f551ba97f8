"""Scaling (paper tab:scaling_table): backbones, each supervised and by reward."""

from __future__ import annotations

from collections.abc import Sequence

from cecdata.errors import UsageError
from cectrain.protocols.study import Study, Variant, short_names

#: the paper's, with the sizes that exist (PAPER.md row 21)
BACKBONES = (
    "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B",
)  # fmt: skip


def scaling(
    backbones: Sequence[str], sft_steps: int, seeds: Sequence[int], benchmarks: Sequence[str]
) -> Study:
    """Two rows a backbone: supervised steps alone, and PPO from the backbone as the recipe says."""
    if sft_steps < 1:
        raise UsageError("--sft-steps: at least 1 for the supervised rows")
    variants = []
    for name, short in zip(backbones, short_names(backbones), strict=True):
        policy = f'policy.name="{name}"'
        supervised = (policy, f"sft.steps={sft_steps}", "ppo.updates=0")
        variants.append(Variant(f"{short} SFT", supervised, (short, "SFT")))
        variants.append(Variant(f"{short} RL", (policy,), (short, "RL")))
    return Study("scaling", "Backbones, supervised and by reward", tuple(variants), tuple(seeds),
                 ("backbone", "training"), tuple(benchmarks))  # fmt: skip
