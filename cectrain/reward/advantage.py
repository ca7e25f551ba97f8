# ruff: noqa: N803 - axes stand in the names
"""Advantages: rewards of whole groups minus a baseline. P sources, L candidates of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TINY = 1e-6  # a smaller deviation is no scale to divide by


def advantages(
    rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor, whiten: str = "none"
) -> torch.Tensor:
    """A = R − baseline, shape [P, L].

    `value`, `frozen_value`: V(x), paper §3.4. `leave_one_out`: the mean of the group's other
    candidates. `group`: the group's mean. `none`: 0. `whiten` brings the result to mean 0 and
    deviation 1 over the batch, or divides each group by its own deviation; where all are equal
    nothing is divided.

    >>> import torch
    >>> advantages(torch.tensor([[1.0, 0.0, 0.5]]), "leave_one_out", torch.zeros(1)).tolist()
    [[0.75, -0.75, 0.0]]
    """
    found = rewards_P_L - baselines(rewards_P_L, baseline, values_P)
    if whiten == "batch":
        spread = found.std(correction=0)
        return (found - found.mean()) / spread if spread > _TINY else found - found.mean()
    if whiten == "group":
        spreads = found.std(dim=1, correction=0, keepdim=True)
        return found / spreads.where(spreads > _TINY, 1.0)
    return found


def baselines(rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor) -> torch.Tensor:
    """What is subtracted, broadcastable to [P, L]."""
    if baseline in ("value", "frozen_value"):
        return values_P[:, None]
    if baseline == "leave_one_out":
        others = rewards_P_L.shape[1] - 1
        return (rewards_P_L.sum(dim=1, keepdim=True) - rewards_P_L) / others
    if baseline == "group":
        return rewards_P_L.mean(dim=1, keepdim=True)
    return rewards_P_L.new_zeros(())


def figures(rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor) -> dict[str, float]:
    """What is logged of a batch's baseline."""
    subtracted = baselines(rewards_P_L, baseline, values_P)
    return {
        "zero_advantage_share": zero_advantage_share(rewards_P_L),
        "explained_variance": explained_variance(rewards_P_L, subtracted),
        "value_mean": float(values_P.mean()),
    }


def explained_variance(rewards_P_L: torch.Tensor, predicted: torch.Tensor) -> float:
    """1 − Var(R − baseline) / Var(R); 0 where the rewards do not vary."""
    total = float(rewards_P_L.var(correction=0))
    if total < _TINY**2:
        return 0.0
    return 1.0 - float((rewards_P_L - predicted).var(correction=0)) / total


def zero_advantage_share(rewards_P_L: torch.Tensor) -> float:
    """Share of the groups whose candidates all earned the same: they teach nothing."""
    spread = rewards_P_L.max(dim=1).values - rewards_P_L.min(dim=1).values
    return float((spread < _TINY).float().mean())
