# ruff: noqa: N803, N806 - axes are in the names
"""Advantages: rewards minus a baseline, which a value network V(x) may give, over all ranks.

Axes: P sources, L candidates of each, D features.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cectrain.checkpoints import load_optimizer, name_states
from cectrain.config import PpoConfig

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

FILE = "value.safetensors"
_HIDDEN, _RATE, _STEPS = 128, 1e-3, 20  # of the value network: width, and of Adam per batch
_TINY = 1e-6  # smaller standard deviations are not divided by


class Baseline:
    """The baseline that `ppo.baseline` names; without a value network `value` is None, V(x) 0."""

    def __init__(
        self, model: PreTrainedModel, ppo: PpoConfig, accelerator: Accelerator, seed: int
    ) -> None:
        self._ppo, self._accelerator = ppo, accelerator
        self.value: ValueNetwork | None = None
        if ppo.baseline == "value":
            width = model.config.get_text_config().hidden_size
            self.value = ValueNetwork(width, seed)

    def subtract_and_fit(
        self, model: PreTrainedModel, prompts: Mapping[str, torch.Tensor], rewards_P_L: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the advantages [P, L] of all ranks' groups and their figures, then fit V.

        V is fitted to the mean reward of each group. `model` is the policy as it is now. `prompts`
        has the `input_ids` and `attention_mask` of this rank's sources, padded on the left.
        """
        ppo, values_P = self._ppo, torch.zeros(len(rewards_P_L))
        if self.value is not None:
            features_P_D = self._gather_features(model, prompts)
            values_P = self.value.predict(features_P_D)
            # Only then: V is frozen while it judges a batch (docs/paper.md row 3).
            self.value.fit(features_P_D, rewards_P_L.mean(dim=1))
        advantages_P_L = compute_advantages(rewards_P_L, ppo.baseline, values_P, ppo.whiten)
        subtracted = compute_baselines(rewards_P_L, ppo.baseline, values_P)
        return advantages_P_L, {
            "zero_advantage_share": zero_advantage_share(rewards_P_L),
            "explained_variance": explained_variance(rewards_P_L, subtracted),
            "value_mean": float(values_P.mean()),
        }

    def _gather_features(
        self, model: PreTrainedModel, prompts: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """Return the inputs of V for the sources of all ranks, shape [P, D], on the CPU."""
        with torch.no_grad(), self._accelerator.autocast():
            output: Any = model(**prompts, output_hidden_states=True, logits_to_keep=1)
        # Prompts are padded on the left, so the last position is the last token of each.
        local = output.hidden_states[-1][:, -1].float()
        gathered: torch.Tensor = self._accelerator.gather(local)
        return gathered.cpu()


def compute_advantages(
    rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor, whiten: str = "none"
) -> torch.Tensor:
    """Return A = R − baseline, shape [P, L].

    `value`: V(x), paper §3.4. `leave_one_out`: the mean of the group's other
    candidates. `group`: the group's mean. `none`: 0. `whiten = "batch"` normalises the result to
    mean 0 and standard deviation 1. Equal values are not divided.
    """
    centred = rewards_P_L - compute_baselines(rewards_P_L, baseline, values_P)
    if whiten == "batch":
        spread = centred.std(correction=0)
        shifted = centred - centred.mean()
        return shifted / spread if spread > _TINY else shifted
    return centred


def compute_baselines(
    rewards_P_L: torch.Tensor, baseline: str, values_P: torch.Tensor
) -> torch.Tensor:
    """Return the values that are subtracted: [P, L], or [P, 1] or [] to be broadcast."""
    if baseline == "value":
        return values_P[:, None]
    if baseline == "leave_one_out":
        others = rewards_P_L.shape[1] - 1
        return (rewards_P_L.sum(dim=1, keepdim=True) - rewards_P_L) / others
    if baseline == "group":
        return rewards_P_L.mean(dim=1, keepdim=True)
    return rewards_P_L.new_zeros(())


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


class ValueNetwork:
    """Linear, tanh, linear, on the CPU in fp32, so that every rank computes the same bits.

    It is not part of the policy's model, so DDP and LoRA do not affect it.
    """

    def __init__(self, width: int, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = torch.nn.Sequential(
                torch.nn.Linear(width, _HIDDEN), torch.nn.Tanh(), torch.nn.Linear(_HIDDEN, 1)
            )
        self._adam = torch.optim.Adam(self._net.parameters(), lr=_RATE)

    def predict(self, features_P_D: torch.Tensor) -> torch.Tensor:
        """Return V of each source, shape [P], without gradient."""
        with torch.no_grad():
            values_P: torch.Tensor = self._net(_normalise_features(features_P_D)).squeeze(-1)
        return values_P

    def fit(self, features_P_D: torch.Tensor, rewards_P: torch.Tensor) -> None:
        """Take Adam steps on (V − reward)², `rewards_P` the mean of each source's candidates."""
        inputs, targets = _normalise_features(features_P_D), rewards_P.detach().float().cpu()
        for _ in range(_STEPS):
            loss = (self._net(inputs).squeeze(-1) - targets).square().mean()
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()

    def save(self, folder: Path) -> None:
        """Write weights and optimizer to `value.safetensors` in a checkpoint's folder."""
        from safetensors.torch import save_file

        tensors = {f"net.{name}": value for name, value in self._net.state_dict().items()}
        tensors |= name_states(self._adam, "adam")
        save_file(tensors, folder / FILE)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
        from safetensors.torch import load_file

        tensors = load_file(folder / FILE)
        net = {name[4:]: value for name, value in tensors.items() if name.startswith("net.")}
        self._net.load_state_dict(net)
        load_optimizer(self._adam, "adam", tensors)


def _normalise_features(features_P_D: torch.Tensor) -> torch.Tensor:
    """Return features [P, D] in float32, each source with mean 0 and variance 1."""
    wide = features_P_D.detach().float().cpu()
    return torch.nn.functional.layer_norm(wide, wide.shape[-1:])
