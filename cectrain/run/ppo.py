"""The PPO stage: set TRL up, build the trainer, resume, train, and score the policy around it."""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import UsageError
from cecdata.common.settings import require_known
from cecdata.models.causal import THINKING_OFF
from cectrain import checkpoints, distributed
from cectrain.config import PpoConfig, RewardConfig
from cectrain.run import metrics_log
from cectrain.run.heldout import BestPolicy, HeldOut
from cectrain.run.job import Job, Trained, find_longest_candidate

if TYPE_CHECKING:
    from trl import GRPOConfig

    from cectrain.reward.group_reward import GroupReward
    from cectrain.run.trainer import GroupTrainer


def make_arguments(
    ppo: PpoConfig, *, out: Path, seed: int, new_tokens: int, processes: int, cpu: bool
) -> GRPOConfig:
    """Return TRL's arguments for our settings.

    `new_tokens` is the longest candidate, `processes` the number of ranks. Raises UsageError if
    `ppo.trl` has one of our settings, or one that TRL does not know.
    """
    from trl import GRPOConfig

    names = [setting.name for setting in fields(GRPOConfig)]
    for name in ppo.trl:
        require_known("setting of TRL's GRPOConfig", name, names)
    # A cycle draws the candidates of one update and learns from them `ppo.epochs` times; a step of
    # TRL's is one of these times, in `ppo.accumulation` backward passes.
    sequences = ppo.groups * ppo.candidates
    settings: dict[str, Any] = dict(  # noqa: C408 - keywords, because the names are TRL's
        output_dir=str(out),
        seed=seed,
        data_seed=seed,
        use_cpu=cpu,
        per_device_train_batch_size=sequences // (processes * ppo.accumulation),
        gradient_accumulation_steps=ppo.accumulation,
        steps_per_generation=ppo.accumulation,
        num_generations=ppo.candidates,
        num_iterations=ppo.epochs,
        max_steps=ppo.updates * ppo.epochs,
        max_completion_length=new_tokens,
        temperature=ppo.temperature,
        top_p=ppo.top_p,
        top_k=0,  # off
        epsilon=ppo.clip,
        beta=0.0,  # as an entropy bonus, it would give rows a gradient that have no advantage
        entropy_coef=0.0,
        learning_rate=ppo.learning_rate,
        bf16=ppo.bf16,
        gradient_checkpointing=ppo.gradient_checkpointing,
        chat_template_kwargs=dict(THINKING_OFF),
        use_vllm=False,
        save_strategy="steps",
        # A resume is exact only from the end of a cycle, because candidates are not stored.
        save_steps=ppo.save_every * ppo.epochs,
        save_total_limit=None,
        logging_steps=ppo.epochs,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=not cpu,
    )
    if clash := sorted(settings.keys() & ppo.trl.keys()):
        raise UsageError(
            f"ppo.trl.{clash[0]} is set by cectrain itself: use the settings of [ppo], or seed"
        )
    others = {"loss_type": "grpo", "scale_rewards": "none", "report_to": "none", **ppo.trl}
    return GRPOConfig(**others, **settings)


def run_ppo(job: Job, reward: RewardConfig) -> Trained:
    """Train from the newest whole checkpoint, or from the start.

    On rank 0 `job.policy` is then the best one. Without `ppo.updates` the policy stays as it is and
    is scored once. Every rank must call this.
    """
    if not job.config.ppo.updates:
        scores = job.score_before_ppo()
        return Trained(0, scores, scores, 0, scores)
    from cectrain.reward.group_reward import GroupReward
    from cectrain.run.callback import EvalCallback

    trainer = _make_trainer(job, GroupReward(job.encoder, reward, job.config.ppo.candidates))
    before = job.score_before_ppo()
    best = None
    if distributed.is_rank0():
        best = BestPolicy(job.state / "best", before, job.policy, job.log)

    def evaluate(batch: int) -> HeldOut:
        """Score the policy after a batch, log its scores, and return rank 0's on every rank."""
        policy = trainer.current_policy()
        scores = distributed.broadcast_from_rank0(job.score(policy))
        job.metrics.write("heldout", batch, metrics_log.name_figures(scores))
        job.watch(policy, batch)
        if best is not None:
            best.compare(batch, scores, policy)
        return scores

    trainer.add_callback(EvalCallback(job.config.ppo, job.metrics, evaluate, job.log))
    trainer.train(resume_from_checkpoint=_find_checkpoint(job))
    batches = int(trainer.state.global_step) // job.config.ppo.epochs
    after = evaluate(batches)
    if best is None:
        return Trained(batches, before, after, batches, after)
    best.restore(job.policy)
    return Trained(batches, before, after, best.batch, best.scores)


def _make_trainer(job: Job, rewarder: GroupReward) -> GroupTrainer:
    """Return the trainer of a run, on TRL that prints nothing."""
    import torch
    from transformers.trainer_callback import PrinterCallback
    from transformers.utils import logging

    from cectrain.run.trainer import GroupTrainer

    logging.disable_progress_bar()
    # TRL knows only the older name.
    deprecated = ".*gradient_checkpointing` is deprecated"
    warnings.filterwarnings("ignore", deprecated, FutureWarning)
    config = job.config
    args = make_arguments(
        config.ppo,
        out=job.state / "ppo",
        seed=config.seed,
        new_tokens=find_longest_candidate(config),
        processes=distributed.count_processes(),
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


def _find_checkpoint(job: Job) -> str | None:
    """Return the checkpoint from which all ranks resume, and log its name."""
    newest = checkpoints.find_newest(job.state / "ppo", job.log) if distributed.is_rank0() else None
    newest = distributed.broadcast_from_rank0(newest)
    if newest is None:
        return None
    folder, _step = newest
    job.log(f"resuming from {folder.name}")
    return str(folder)
