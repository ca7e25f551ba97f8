# ruff: noqa: N803, N806 - axes are in the names
"""The baseline of the trainer's batches: a value network V(x), or none, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cectrain.config import PpoConfig
from cectrain.reward import advantage
from cectrain.reward.group_reward import GroupReward
from cectrain.reward.value_head import ValueNetwork

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

_WITH_VALUE = ("value", "frozen_value")


class Critic:
    """The value network that `ppo.baseline` names; for a baseline without one V(x) is 0."""

    def __init__(
        self,
        model: PreTrainedModel,
        reward: GroupReward,
        ppo: PpoConfig,
        accelerator: Accelerator,
        seed: int,
    ) -> None:
        self._reward, self._ppo, self._accelerator = reward, ppo, accelerator
        self._value: ValueNetwork | None = None
        if ppo.baseline in _WITH_VALUE:
            embedded = ppo.features == "embedding"
            width = reward.dimension if embedded else model.config.get_text_config().hidden_size
            self._value = ValueNetwork(
                width,
                seed,
                rate=ppo.value_rate,
                steps=ppo.value_steps,
                frozen=ppo.baseline == "frozen_value",
            )

    def advantages(
        self,
        model: PreTrainedModel,
        sources: Sequence[str],
        prompts: Mapping[str, torch.Tensor],
        rewards_P_L: torch.Tensor,
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the advantages [P, L] of all ranks' groups and their figures, then fit V.

        V is fitted to the mean reward of each group. `model` is the policy as it is now, wrapped or
        not. `sources` are this rank's; `prompts` has their `input_ids` and `attention_mask`, padded
        on the left.
        """
        ppo, values_P = self._ppo, torch.zeros(len(rewards_P_L))
        features_P_D = None
        if self._value is not None:
            features_P_D = self._features(model, sources, prompts)
            values_P = self._value.predict(features_P_D)
        advantages = advantage.advantages(rewards_P_L, ppo.baseline, values_P, ppo.whiten)
        # After the advantages: V is frozen while it judges a batch (docs/paper.md row 3).
        if self._value is not None and features_P_D is not None:
            self._value.fit(features_P_D, rewards_P_L.mean(dim=1))
        return advantages, advantage.figures(rewards_P_L, ppo.baseline, values_P)

    def _features(
        self, model: PreTrainedModel, sources: Sequence[str], prompts: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """Return the inputs of V for the sources of all ranks, shape [P, D], on the CPU."""
        if self._ppo.features == "embedding":
            local = torch.from_numpy(self._reward.embeddings(sources)).float()
            local = local.to(self._accelerator.device)
        else:
            with torch.no_grad(), self._accelerator.autocast():
                output: Any = model(**prompts, output_hidden_states=True, logits_to_keep=1)
            # Prompts are padded on the left, so the last position is the last token of each.
            local = output.hidden_states[-1][:, -1].float()
        gathered: torch.Tensor = self._accelerator.gather(local)
        return gathered.cpu()

    def save(self, folder: Path) -> None:
        """Write V to the policy's checkpoint."""
        if self._value is not None:
            self._value.save(folder)

    def load(self, folder: Path) -> None:
        """Read V from the policy's checkpoint."""
        if self._value is not None:
            self._value.load(folder)
