"""The supervised gradient that PPO adds to its own (PPO-ptx, Ouyang et al. 2022, eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cectrain.config import PpoConfig
from cectrain.corrector.policy import Policy
from cectrain.data.training_pairs import TrainingPairs
from cectrain.supervised.loss import collate, loss_function
from cectrain.supervised.sft import supervised_batch

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class SupervisedGradient:
    """The pairs of which each optimizer step learns `ppo.supervised`, decided by its number."""

    ppo: PpoConfig
    pairs: TrainingPairs
    warmup_examples: int  # used by the warm start; the gradient takes those after them

    def loss(
        self, policy: Policy, optimizer_step: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return the mean loss of the step's pairs, unweighted, and their batch."""
        size = self.ppo.supervised
        step = -(-self.warmup_examples // size) + optimizer_step
        batch = collate(policy, supervised_batch(self.pairs, step, size))
        return loss_function(policy, "bf16" if self.ppo.bf16 else "auto")(batch), batch
