"""The inputs that the stages of a training run share, and the result of PPO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.embed import Encoder
from cectrain.config import Config
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair, Pairs
from cectrain.data.training_pairs import TrainingPairs
from cectrain.model import heldout
from cectrain.model.heldout import HeldOut
from cectrain.run import distributed
from cectrain.run.progress import Logger
from cectrain.store import metrics_log
from cectrain.store.metrics_log import MetricsLog

if TYPE_CHECKING:
    from cecdata.embed.store import Store


@dataclass(frozen=True, slots=True)
class Job:
    """The inputs of all stages. `state` is the folder of checkpoints and caches of the run."""

    config: Config
    dataset: Pairs
    encoder: Encoder | None  # None if the run has no PPO, and so rewards nothing
    embeddings: Store | None  # of the references
    policy: Policy
    sft_pairs: TrainingPairs
    ppo_pairs: TrainingPairs
    watched: tuple[Pair, ...]  # held-out pairs
    clean: tuple[str, ...]  # held-out clean sentences
    state: Path
    metrics: MetricsLog
    log: Logger

    def score(self, policy: Policy) -> HeldOut:
        """Return the policy's scores on the held-out sentences."""
        return heldout.evaluate(policy, self.watched, self.clean)

    def score_before_ppo(self, score: Callable[[], HeldOut]) -> HeldOut:
        """Return and log the scores before PPO; a resumed run reads those that it kept."""
        path = self.state / "after_sft.json"
        kept = distributed.is_rank0() and path.is_file()
        scores = distributed.broadcast_from_rank0(heldout.read_held_out(path) if kept else None)
        if scores is None:
            scores = score()
            if distributed.is_rank0():
                heldout.write_held_out(path, scores)
        self.metrics.write("heldout", 0, metrics_log.of_held_out(scores))
        return scores


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of PPO: batches run, held-out scores before and after, and the policy.

    On rank 0 `policy` holds all weights; on other ranks it may be the policy as it was before.
    """

    batches: int
    before: HeldOut
    after: HeldOut
    policy: Policy
