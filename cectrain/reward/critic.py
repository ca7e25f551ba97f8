"""V of the trainer's batches: what it sees of their sources, gathered over all processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cectrain.config import PpoConfig
from cectrain.reward.group_reward import GroupReward
from cectrain.reward.value_head import ValueNetwork

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

_WITH_VALUE = ("value", "frozen_value")


class Critic:
    """The baseline's V where it has one; without one V is 0 and nothing is fitted."""

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

    def features(
        self, model: PreTrainedModel, sources: Sequence[str], prompts: Mapping[str, torch.Tensor]
    ) -> torch.Tensor | None:
        """What V sees of this process' sources and of all others', shape [P, D]; None without V.

        `model` is the policy as it is now, wrapped or not; `prompts` are the sources' `input_ids`
        and `attention_mask`, padded on the left.
        """
        if self._value is None:
            return None
        if self._ppo.features == "embedding":
            local = torch.from_numpy(self._reward.embeddings(sources)).float()
            local = local.to(self._accelerator.device)
        else:
            with torch.no_grad(), self._accelerator.autocast():
                seen: Any = model(**prompts, output_hidden_states=True, logits_to_keep=1)
            # Prompts are padded on the left: the last place is the last token of each.
            local = seen.hidden_states[-1][:, -1].float()
        gathered: torch.Tensor = self._accelerator.gather(local)
        return gathered.cpu()

    def values(self, features_P_D: torch.Tensor | None, count: int) -> torch.Tensor:  # noqa: N803 - axes stand in the names
        """V of each of `count` sources, shape [P]."""
        if self._value is None or features_P_D is None:
            return torch.zeros(count)
        return self._value.predict(features_P_D)

    def fit(self, features_P_D: torch.Tensor | None, rewards_P_L: torch.Tensor) -> None:  # noqa: N803
        """V towards the mean rewards of a batch that it has judged."""
        if self._value is not None and features_P_D is not None:
            self._value.fit(features_P_D, rewards_P_L.mean(dim=1))

    def save(self, folder: Path) -> None:
        """V beside the policy's checkpoint."""
        if self._value is not None:
            self._value.save(folder)

    def load(self, folder: Path) -> None:
        """The reverse of `save`."""
        if self._value is not None:
            self._value.load(folder)
