# ruff: noqa: N803 - axes are in the names
"""The value network V(x): two layers on the policy's state or the embedding of a source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cectrain.store.checkpoints import load_optimizer, optimizer_tensors

if TYPE_CHECKING:
    import torch

FILE = "value.safetensors"
_HIDDEN = 128


class ValueNetwork:
    """Linear, tanh, linear, on the CPU in fp32, so that every rank computes the same bits.

    It is not part of the policy's model, so DDP, FSDP and LoRA do not affect it. With `frozen` it
    is fitted to the first batch only.
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
        """Return V of each source, shape [P], without gradient."""
        import torch

        with torch.no_grad():
            values_P: torch.Tensor = self._net(_normalised(features_P_D)).squeeze(-1)  # noqa: N806
        return values_P

    def fit(self, features_P_D: torch.Tensor, rewards_P: torch.Tensor) -> None:
        """Take Adam steps on (V − mean reward)², after V has judged the batch."""
        if self._frozen and self._fitted:
            return
        inputs, targets = _normalised(features_P_D), rewards_P.detach().float().cpu()
        for _ in range(self._steps):
            loss = (self._net(inputs).squeeze(-1) - targets).square().mean()
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
        self._fitted = True

    def save(self, folder: Path) -> None:
        """Write weights and optimizer to `value.safetensors` in a checkpoint's folder."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"net.{name}": value for name, value in self._net.state_dict().items()}
        tensors |= optimizer_tensors(self._adam, "adam")
        tensors["fitted"] = torch.tensor([int(self._fitted)])
        save_file(tensors, folder / FILE)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        from safetensors.torch import load_file

        tensors = load_file(folder / FILE)
        self._fitted = bool(tensors.pop("fitted"))
        net = {name[4:]: value for name, value in tensors.items() if name.startswith("net.")}
        self._net.load_state_dict(net)
        load_optimizer(self._adam, "adam", tensors)


def _normalised(features_P_D: torch.Tensor) -> torch.Tensor:
    import torch

    wide = features_P_D.detach().float().cpu()
    return torch.nn.functional.layer_norm(wide, wide.shape[-1:])
