# ruff: noqa: N803 - axes are in the names
"""Advantages: rewards minus a baseline. Axes: P sources, L candidates of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TINY = 1e-6  # smaller standard deviations are not divided by


def advantages(
    rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor, whiten: str = "none"
) -> torch.Tensor:
    """Return A = R − baseline, shape [P, L].

    `value`, `frozen_value`: V(x), paper §3.4. `leave_one_out`: the mean of the group's other
    candidates. `group`: the group's mean. `none`: 0. `whiten = "batch"` normalises the result to
    mean 0 and standard deviation 1, `"group"` divides each group by its own deviation. Equal
    values are not divided.

    >>> import torch
    >>> advantages(torch.tensor([[1.0, 0.0, 0.5]]), "leave_one_out", torch.zeros(1)).tolist()
    [[0.75, -0.75, 0.0]]
    """
    centred = rewards_P_L - baselines(rewards_P_L, baseline, values_P)
    if whiten == "batch":
        spread = centred.std(correction=0)
        shifted = centred - centred.mean()
        return shifted / spread if spread > _TINY else shifted
    if whiten == "group":
        spreads = centred.std(dim=1, correction=0, keepdim=True)
        return centred / spreads.where(spreads > _TINY, 1.0)
    return centred


def baselines(rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor) -> torch.Tensor:
    """Return the values that are subtracted, broadcastable to [P, L]."""
    if baseline in ("value", "frozen_value"):
        return values_P[:, None]
    if baseline == "leave_one_out":
        others = rewards_P_L.shape[1] - 1
        return (rewards_P_L.sum(dim=1, keepdim=True) - rewards_P_L) / others
    if baseline == "group":
        return rewards_P_L.mean(dim=1, keepdim=True)
    return rewards_P_L.new_zeros(())


def figures(rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor) -> dict[str, float]:
    """Return the figures of a batch's baseline for metrics.jsonl."""
    subtracted = baselines(rewards_P_L, baseline, values_P)
    return {
        "zero_advantage_share": zero_advantage_share(rewards_P_L),
        "explained_variance": explained_variance(rewards_P_L, subtracted),
        "value_mean": float(values_P.mean()),
    }


def explained_variance(rewards_P_L: torch.Tensor, predicted: torch.Tensor) -> float:
    """Return 1 − Var(R − baseline) / Var(R); 0 if the rewards do not vary."""
    total = float(rewards_P_L.var(correction=0))
    if total < _TINY**2:
        return 0.0
    return 1.0 - float((rewards_P_L - predicted).var(correction=0)) / total


def zero_advantage_share(rewards_P_L: torch.Tensor) -> float:
    """Return the share of groups whose candidates all have the same reward."""
    spread = rewards_P_L.max(dim=1).values - rewards_P_L.min(dim=1).values
    return float((spread < _TINY).float().mean())
