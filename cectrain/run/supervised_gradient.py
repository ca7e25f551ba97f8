"""The supervised gradient that PPO adds to its own (PPO-ptx, Ouyang et al. 2022, eq. 2)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from cectrain.config import PpoConfig
from cectrain.corrector.policy import Policy
from cectrain.data.training_pairs import TrainingPairs
from cectrain.supervised.gradient import answer_tokens, refuse_nan
from cectrain.supervised.loss import collate, loss_function
from cectrain.supervised.sft import supervised_batch


@dataclass(frozen=True, slots=True)
class SupervisedGradient:
    """The pairs of which each optimizer step learns `ppo.supervised`, decided by its number."""

    ppo: PpoConfig
    pairs: TrainingPairs
    warmup_examples: int  # used by the warm start; the gradient takes those after them

    def add(self, policy: Policy, step: int, passes: int, folder: Path) -> dict[str, float]:
        """Add the gradient of the step's pairs, in this many passes, and return figures of it.

        Raises CecError if the loss is not finite, with the batch saved in `folder`.
        """
        started, size = time.perf_counter(), self.ppo.supervised
        if not size:
            return {}
        place = -(-self.warmup_examples // size) + step
        pairs = supervised_batch(self.pairs, place, size)
        rows = -(-size // passes)
        batches = [collate(policy, pairs[at : at + rows]) for at in range(0, len(pairs), rows)]
        tokens = [answer_tokens(batch) for batch in batches]
        loss_of = loss_function(policy, "bf16" if self.ppo.bf16 else "auto")
        mean = 0.0
        for batch, own in zip(batches, tokens, strict=True):
            loss, share = loss_of(batch), own / sum(tokens)
            refuse_nan(loss, batch, folder, step)
            (self.ppo.supervised_weight * share * loss).backward()
            mean += share * float(loss.detach())
        return {
            "supervised_loss": mean,
            "supervised_seconds": time.perf_counter() - started,
        }
