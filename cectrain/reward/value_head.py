# ruff: noqa: N803 - axes stand in the names
"""The value network V(x): two layers on what the policy, or the encoder, makes of a source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

FILE = "value.safetensors"
_HIDDEN = 128


class ValueNetwork:
    """Linear, tanh, linear, on the CPU in fp32, so that every rank computes the same bits.

    It stands outside the policy: neither DDP, FSDP nor LoRA sees it. `frozen` fits it to the first
    batch alone.
    """

    def __init__(
        self, width: int, seed: int, *, rate: float, steps: int, frozen: bool = False
    ) -> None:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = torch.nn.Sequential(
                torch.nn.Linear(width, _HIDDEN), torch.nn.Tanh(), torch.nn.Linear(_HIDDEN, 1)
            )
        self._adam = torch.optim.Adam(self._net.parameters(), lr=rate)
        self._steps, self._frozen, self._fitted = steps, frozen, False

    def predict(self, features_P_D: torch.Tensor) -> torch.Tensor:
        """V of each source, shape [P]; no gradient."""
        import torch

        with torch.no_grad():
            found: torch.Tensor = self._net(_normed(features_P_D)).squeeze(-1)
        return found

    def fit(self, features_P_D: torch.Tensor, rewards_P: torch.Tensor) -> None:
        """Adam steps on (V − mean reward)²: after the advantages of a batch, before the next."""
        if self._frozen and self._fitted:
            return
        inputs, targets = _normed(features_P_D), rewards_P.detach().float().cpu()
        for _ in range(self._steps):
            loss = (self._net(inputs).squeeze(-1) - targets).square().mean()
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
        self._fitted = True

    def save(self, folder: Path) -> None:
        """Weights and moments beside the policy's checkpoint."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"net.{name}": value for name, value in self._net.state_dict().items()}
        for place, state in self._adam.state_dict()["state"].items():
            tensors |= {f"adam.{place}.{name}": value for name, value in state.items()}
        tensors["fitted"] = torch.tensor([int(self._fitted)])
        save_file({name: value.contiguous() for name, value in tensors.items()}, folder / FILE)

    def load(self, folder: Path) -> None:
        """The reverse of `save`."""
        from safetensors.torch import load_file

        tensors = load_file(folder / FILE)
        self._fitted = bool(tensors.pop("fitted"))
        net = {n[4:]: value for n, value in tensors.items() if n.startswith("net.")}
        self._net.load_state_dict(net)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, place, kind = name.split(".")
                state.setdefault(int(place), {})[kind] = value
        self._adam.load_state_dict({**self._adam.state_dict(), "state": state})


def _normed(features_P_D: torch.Tensor) -> torch.Tensor:
    import torch

    wide = features_P_D.detach().float().cpu()
    return torch.nn.functional.layer_norm(wide, wide.shape[-1:])
