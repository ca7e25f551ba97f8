"""The checks that refuse a run before its folder belongs to it, and the stages before PPO, each
resumable.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import durable
from cecdata.common.codec import encode
from cecdata.common.errors import InputError, MissingPackageError, UsageError, how_to_install
from cecdata.embed import Encoder, encoder
from cectrain import distributed
from cectrain.config import Config, DataConfig, RewardConfig, check_shares
from cectrain.data import shards
from cectrain.data.shards import HELD_OUT, TRAIN, PairSource
from cectrain.reward.function import list_functions, load_function
from cectrain.run.job import Job
from cectrain.run.metrics_log import Stopwatch

if TYPE_CHECKING:
    from cectrain.reward.diagnosis import Diagnosis

#: packages that every run imports
PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate", "safetensors")


def check_packages() -> None:
    """Raise MissingPackageError unless the packages of the extra `train` are installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"{', '.join(missing)} not installed: {how_to_install('train')} (Python 3.11 or newer)"
        )


def check_settings(config: Config, processes: int) -> None:
    """Raise UsageError if processes cannot share the work, MissingPackageError for a package."""
    if config.policy.lora_rank and not find_spec("peft"):
        raise MissingPackageError(
            f"policy.lora_rank needs peft, which is not installed: {how_to_install('train')}, or "
            "leave the setting out"
        )
    ppo = config.ppo
    if config.sft.steps and config.sft.batch < processes:
        raise UsageError(f"sft.batch = {config.sft.batch} must be ≥ {processes}, one per process")
    if not ppo.updates:
        return
    if processes > 1 and ppo.supervised:
        raise UsageError("ppo.supervised works only in one process: set ppo.supervised=0")
    check_shares(ppo, processes)
    for name in list_functions(config.reward):
        load_function(name)
    if ppo.trl:  # which TRL may refuse
        from cectrain.run.ppo import make_arguments

        make_arguments(ppo, out=Path(), seed=0, new_tokens=1, processes=processes, cpu=True)


def check_data(dataset: PairSource, config: DataConfig) -> None:
    """Raise InputError if the policy is scored on the validation split and the dataset has none."""
    if not config.tuning and not dataset.rows(HELD_OUT):
        raise InputError(
            f"{dataset.path}: the split {HELD_OUT!r} is empty, but the policy is scored on "
            "it: build with --holdout above 0"
        )


def load_encoder(config: Config) -> Encoder | None:
    """Return the reward's sentence encoder; None if there is no PPO, or a reward without cosines.

    On a GPU it encodes sentences in batches, and the other sentences of a batch may change the last
    bits of a vector; encoding them one by one would take longer than the policy's step. Call this
    after `distributed.join`: it uses this rank's own GPU alone.
    """
    if not (config.ppo.updates and config.reward.is_consensus):
        return None
    import torch

    return encoder(config.encoder, alone=not torch.cuda.is_available())


def run_warm_start(job: Job) -> None:
    """Take the supervised steps, or read the last checkpoint of them."""
    from cectrain.run.supervised import choose_learning_rate, train_sft

    sft = job.config.sft
    if not sft.steps:
        return
    job.score_at_start()
    rate = choose_learning_rate(sft, job.policy)
    job.log(f"{sft.steps:,} supervised steps, learning rate {rate:.2g}")
    stopwatch = Stopwatch()

    def log(step: int, values: dict[str, float]) -> None:
        stopwatch.stop()
        job.metrics.write("sft", step, {**values, **stopwatch.take()})
        stopwatch.start()

    train_sft(job.policy, job.sft_pairs, sft, job.state / "sft", log)


def choose_constants(job: Job) -> RewardConfig:
    """Return the reward's constants: as given, or calibrated on training pairs; log the reason.

    Rank 0 decides for all: on a GPU, vectors may differ in their last bits.
    """
    config = job.config
    if not config.ppo.updates:
        return config.reward
    if not config.reward.is_consensus:
        name = config.reward.reward
        job.log(f"the reward is {name}, which uses no α, τ, β, ε and no reward.unchanged")
        return config.reward
    if not distributed.is_rank0():
        return distributed.broadcast_from_rank0(config.reward)
    diagnosis = _diagnose_reward(job)
    durable.write_text(job.state / "diagnosis.json", json.dumps(encode(diagnosis)) + "\n")
    if config.constants == "auto":
        chosen, reason = diagnosis.favoured, "no others rank right answers above wrong ones better"
    else:
        chosen = "as given" if config.constants == "given" else config.constants
        reason = "the setting `constants` says so"
    reward = diagnosis.rewards[chosen].config
    constants = f"{reward.list_constants()}, ε {reward.epsilon:g}"
    for line in diagnosis.verdict:
        job.log(line)
    job.log(f"PPO uses the constants {chosen} ({constants}): {reason}")
    _log_replaced_constants(job, reward)
    return distributed.broadcast_from_rank0(reward)


def _log_replaced_constants(job: Job, reward: RewardConfig) -> None:
    """Log the constants of the configuration that `reward` does not have."""
    replaced = [
        f"reward.{name} = {value:g}"
        for name, value in asdict(job.config.reward).items()
        if value != getattr(reward, name)
    ]
    if replaced:
        job.log(f"calibration replaces {', '.join(replaced)}: set constants=given to keep them")


def _diagnose_reward(job: Job) -> Diagnosis:
    """Return the diagnosis of the reward on training pairs: held-out ones must decide nothing."""
    from cectrain.reward.diagnosis import diagnose

    config = job.config
    assert job.encoder is not None
    pairs = shards.sample(
        job.dataset,
        TRAIN,
        config.diagnose_pairs,
        config.seed,
        config.policy.max_chars,
        tuning=False if config.data.tuning else None,
    )
    size = config.ppo.candidates
    return diagnose(pairs, job.encoder, config.reward, size=size, seed=config.seed)
