"""The state of a torch optimizer as named tensors, for safetensors files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def optimizer_tensors(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, torch.Tensor]:
    """Return the state by name, PREFIX.PARAMETER.NAME, on the CPU; learning rates are not in it."""
    return {
        f"{prefix}.{parameter}.{name}": value.detach().cpu().contiguous()
        for parameter, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, prefix: str, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Set the state from tensors of that prefix; the reverse of `optimizer_tensors`."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        own, _, rest = key.partition(".")
        if own == prefix:
            parameter, _, name = rest.partition(".")
            state.setdefault(int(parameter), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
