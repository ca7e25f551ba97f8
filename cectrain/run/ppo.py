"""The stage of PPO: the trainer, what watches it, and the policy that is left, of all processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from cecdata.embed import Encoder
from cectrain.model.heldout import HeldOut
from cectrain.model.policy import Policy, load_policy
from cectrain.reward.terms import RewardConfig
from cectrain.run import distributed, reproducibility, stages
from cectrain.run.stages import Job, Trained
from cectrain.store import checkpoints

if TYPE_CHECKING:
    import torch


def ppo(job: Job, reward: RewardConfig, used: Encoder, before: HeldOut | None) -> Trained:
    """PPO from the newest whole checkpoint, or from the beginning, and the scores behind it.

    Of several processes each has a part of it, and the first one the policy that is left; `before`
    is then taken here, on the weights that they share.
    """
    settings, folder = job.config.ppo, job.state / "ppo"
    if before is not None and not settings.updates:
        return Trained(0, before, before, job.policy)
    import torch
    from transformers.trainer_callback import PrinterCallback
    from transformers.utils import logging

    from cectrain.reward.group_reward import GroupReward
    from cectrain.run.callback import Watch
    from cectrain.run.trainer import ConsensusTrainer, arguments

    logging.disable_progress_bar()
    os.environ.setdefault("TRACKIO_DIR", str(job.state / "trackio"))
    args = arguments(
        settings,
        out=folder,
        seed=job.config.seed,
        new_tokens=stages.new_tokens(job.config),
        processes=reproducibility.processes(),
        cpu=not torch.cuda.is_available(),
    )
    rewarder = GroupReward(used, reward, settings.candidates, stages.open_cache(job.config, used))
    sft = job.config.sft
    trainer = ConsensusTrainer(
        job.policy,
        job.pairs,
        rewarder,
        settings,
        args,
        taught=job.taught,
        met=sft.steps * sft.batch,
    )
    shared = before is None
    evaluate = distributed.together(trainer.whole, job.evaluate) if shared else job.evaluate
    trainer.remove_callback(PrinterCallback)  # our own lines say it in fewer words
    start = before or partial(job.before, evaluate)
    watch = Watch(settings, job.log, evaluate, job.tell, start, trainer.report)
    trainer.add_callback(watch)
    for broken in checkpoints.damaged(folder):
        job.tell(f"{broken.name} is not whole and is passed over")
    found = checkpoints.newest(folder)
    if found:
        job.tell(f"going on from {found[0].name}")
    trainer.train(resume_from_checkpoint=str(found[0]) if found else None)
    if job.config.data.cache:
        job.tell(
            f"reference embeddings: {rewarder.from_cache:,} from {job.config.data.cache}, "
            f"{rewarder.encoded:,} encoded because it lacks them"
        )
    batches = int(trainer.state.global_step) // (settings.epochs * settings.minibatches)
    policy = gathered(job, trainer.weights()) if shared else job.policy
    return Trained(batches, watch.before(), evaluate(), policy)


def gathered(job: Job, weights: Mapping[str, torch.Tensor]) -> Policy:
    """The first process' policy with the weights of all; the others' as it was.

    It is loaded anew: what lay in shards is no plain model, and adapters cannot be merged there.
    """
    if distributed.load_on() == "auto" or not job.first:
        return job.policy  # each process has all of it
    policy = load_policy(job.config.policy, job.config.seed, "cpu")
    policy = stages.with_adapter(policy, job.config.policy)
    policy.model.load_state_dict(weights)
    return policy
