"""Optimizers that update one weight after the other: AdamW for weights in bf16, with fp32 copies.

A step at the end of a schedule is smaller than bf16 can add to a weight; copies sum such steps.
torch's AdamW has none, and `load_state_dict` would convert its fp32 state to bf16.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.adamw import adamw


class ByWeight(torch.optim.Optimizer):  # type: ignore[misc]
    """The base of an optimizer, besides one of torch, that defines `update` for one weight."""

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Update every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self.update(weight, group)

    def update(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        """Update a weight by its gradient and the settings of its group."""
        raise NotImplementedError


def with_fp32_copies(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the optimizer, an AdamW, or one with fp32 copies if any of its weights is in bf16."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    if all(weight.dtype == torch.float32 for weight in weights):
        return optimizer
    return AdamWWithCopies(optimizer.param_groups)


class AdamWWithCopies(ByWeight, torch.optim.AdamW):  # type: ignore[misc]
    """AdamW whose state also has `copy`, the fp32 value that each weight is rounded from."""

    def update(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        """Take a step on the copy, and set the weight to it, rounded."""
        state = self.state[weight]
        if not state:
            copy = weight.detach().to(torch.float32, copy=True)
            state["step"] = torch.zeros((), device=weight.device)
            state |= {"copy": copy, "exp_avg": torch.zeros_like(copy)}
            state["exp_avg_sq"] = torch.zeros_like(copy)
        tensors = ([state[name]] for name in ("exp_avg", "exp_avg_sq"))
        beta1, beta2 = group["betas"]
        adamw(
            [state["copy"]], [weight.grad.float()], *tensors, [], [state["step"]], fused=True,
            amsgrad=False, maximize=False, beta1=beta1, beta2=beta2,
            **{name: group[name] for name in ("lr", "weight_decay", "eps")},
        )  # fmt: skip
        weight.copy_(state["copy"])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state and keep its dtypes; torch's own method would convert it to bf16."""
        super().load_state_dict(state_dict)
        weights = [weight for group in self.param_groups for weight in group["params"]]
        for number, state in state_dict["state"].items():
            weight = weights[number]
            self.state[weight] = {
                name: value.to(weight.device, copy=True) for name, value in state.items()
            }
