"""Muon with its matrix products in the dtype that the hardware multiplies fastest.

torch's Muon multiplies in bf16. A CPU without instructions for bf16 then takes 35 times as long as
in fp32: 85 % of the time of a training step.
"""

from __future__ import annotations

from typing import Any

import torch

from cectrain.model.qwen3_forward import pick_dtype


class Muon(torch.optim.Muon):  # type: ignore[misc]
    """torch's Muon; in bf16 its steps have the same bits as those of torch."""

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Update every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, group)

    def _update(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        """Take a step with Nesterov momentum and the learning rate of Jordan et al. (2024)."""
        state, rate, momentum = self.state[weight], group["lr"], group["momentum"]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight.grad)
        state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
        update = weight.grad.lerp(state["momentum_buffer"], momentum)
        dtype = pick_dtype() if weight.device.type == "cpu" else torch.bfloat16
        update = _orthogonal(update.to(dtype), group)
        tall = max(1.0, weight.shape[0] / weight.shape[1])
        weight.mul_(1 - rate * group["weight_decay"])
        weight.add_(update, alpha=-rate * tall**0.5)


def _orthogonal(matrix: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
    """Return the nearest orthogonal matrix, roughly, by Newton-Schulz iterations."""
    a, b, c = group["ns_coefficients"]
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.T if tall else matrix
    found = found / found.norm().clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = found @ found.T
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if tall else found
