"""The PPO stage: build the trainer, resume, train, and score the policy before and after."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

from cectrain import checkpoints, distributed
from cectrain.config import RewardConfig
from cectrain.run.grpo_settings import arguments, longest_candidate
from cectrain.run.heldout import HeldOut
from cectrain.run.stages import Job, Trained

if TYPE_CHECKING:
    from cectrain.reward.group_reward import GroupReward
    from cectrain.run.trainer import GroupTrainer


def ppo(job: Job, reward: RewardConfig) -> Trained:
    """Train from the newest whole checkpoint, or from the start, and score the policy around it.

    Without `ppo.updates` the policy stays as it is and is scored once. Every rank must call this.
    """
    if not job.config.ppo.updates:
        scores = job.score_before_ppo(lambda: job.score(job.policy))
        return Trained(0, scores, scores, job.policy)
    from cectrain.reward.group_reward import GroupReward
    from cectrain.run.callback import EvalCallback

    rewarder = GroupReward(job.encoder, reward, job.config.ppo.candidates)
    trainer = _trainer(job, rewarder)

    def score() -> HeldOut:
        """Score the policy, and return rank 0's scores on every rank."""
        return distributed.broadcast_from_rank0(job.score(trainer.current_policy()))

    before = partial(job.score_before_ppo, score)
    watch = EvalCallback(job.config.ppo, job.metrics, score, job.log, before)
    trainer.add_callback(watch)
    trainer.train(resume_from_checkpoint=_newest_checkpoint(job))
    batches = int(trainer.state.global_step) // job.config.ppo.epochs
    return Trained(batches, watch.before, score(), job.policy)


def _trainer(job: Job, rewarder: GroupReward) -> GroupTrainer:
    import torch
    from transformers.trainer_callback import PrinterCallback
    from transformers.utils import logging

    from cectrain.run.trainer import GroupTrainer

    logging.disable_progress_bar()
    # TRL knows only the older name.
    old = ".*gradient_checkpointing` is deprecated"
    warnings.filterwarnings("ignore", old, FutureWarning)
    config = job.config
    args = arguments(
        config.ppo,
        out=job.state / "ppo",
        seed=config.seed,
        new_tokens=longest_candidate(config),
        processes=distributed.world_size(),
        cpu=not torch.cuda.is_available(),
    )
    trainer = GroupTrainer(
        job.policy,
        job.ppo_pairs,
        rewarder,
        config.ppo,
        args,
        sft_pairs=job.sft_pairs,
        warmup_examples=config.sft.steps * config.sft.batch,
    )
    trainer.remove_callback(PrinterCallback)  # ours logs the same figures in fewer words
    return trainer


def _newest_checkpoint(job: Job) -> str | None:
    found = checkpoints.newest(job.state / "ppo", job.log) if distributed.is_rank0() else None
    newest = distributed.broadcast_from_rank0(found)
    if newest is None:
        return None
    job.log(f"resuming from {newest[0].name}")
    return str(newest[0])
