"""The loop of an optimizer that updates one weight after the other."""

from __future__ import annotations

from typing import Any

import torch


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
