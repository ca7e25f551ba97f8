"""The checks that refuse a run before its first step, and before its folder belongs to it; the
stages around PPO, each resumable, and the inputs that they share.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from cecdata.common import durable
from cecdata.common.codec import encode
from cecdata.common.durable import STATE
from cecdata.common.errors import (
    InputError,
    MissingPackageError,
    UsageError,
    how_to_install,
)
from cecdata.embed import Encoder, encoder
from cectrain import distributed
from cectrain.config import Config, DataConfig, RewardConfig, check_shares
from cectrain.corrector.folder import BUILTIN
from cectrain.corrector.policy import Policy, check_context, reader
from cectrain.data import shards
from cectrain.data.shards import HELD_OUT, TRAIN, Pair, PairSource
from cectrain.data.training_pairs import TrainingPairs, training_pairs
from cectrain.model.policy import load_policy, with_adapter
from cectrain.reward.function import functions_of, load
from cectrain.run import heldout, metrics_log
from cectrain.run.heldout import HeldOut
from cectrain.run.metrics_log import Logger, MetricsLog, Stopwatch

AT_START = "at_start.json"  # held-out scores before the warm start
_HELD_OUT_SEED = 42  # for every run, so that runs of several seeds are scored on the same sentences


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
    """Raise UsageError if the processes cannot share the work, or for a package that is missing.

    The latter is a MissingPackageError and names the setting that needs the package.
    """
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
    for name in functions_of(config.reward):
        load(name)
    if ppo.trl:
        from cectrain.run.ppo import arguments

        arguments(ppo, out=Path(), seed=0, new_tokens=1, processes=processes, cpu=True)


def check_data(dataset: PairSource, config: DataConfig) -> None:
    """Raise InputError if the policy is scored on the validation split and the dataset has none."""
    if not config.tuning and not dataset.rows(HELD_OUT):
        raise InputError(
            f"{dataset.path}: the split {HELD_OUT!r} is empty, but the policy is scored on "
            "it: build with --holdout above 0"
        )


@dataclass(frozen=True, slots=True)
class Job:
    """The inputs of all stages. `state` is the folder of checkpoints and caches of the run."""

    config: Config
    dataset: PairSource
    encoder: Encoder | None  # None if nothing is rewarded, or by a reward without cosines
    policy: Policy
    sft_pairs: TrainingPairs
    ppo_pairs: TrainingPairs
    heldout_pairs: tuple[Pair, ...]
    clean: tuple[str, ...]  # held-out clean sentences
    watched: tuple[Pair, ...]  # pairs that are scored beside them, and decide nothing
    state: Path
    metrics: MetricsLog
    log: Logger

    def score(self, policy: Policy) -> HeldOut:
        """Return the policy's scores on the held-out sentences."""
        return heldout.evaluate(policy, self.heldout_pairs, self.clean)

    def score_at_start(self) -> None:
        """Keep the scores of the policy that the run starts from, for the summary."""
        path = self.state / AT_START
        if distributed.is_rank0() and not path.is_file():
            heldout.write_held_out(path, self.score(self.policy))

    def watch(self, policy: Policy, batch: int) -> None:
        """Log the policy's scores on the watched pairs."""
        if self.watched and distributed.is_rank0():
            scores = heldout.evaluate(policy, self.watched, ())
            self.metrics.write("watch", batch, metrics_log.of_held_out(scores))

    def score_before_ppo(self) -> HeldOut:
        """Return and log the scores before PPO; a resumed run reads those that it kept."""
        path = self.state / "after_sft.json"
        exists = distributed.is_rank0() and path.is_file()
        scores = distributed.broadcast_from_rank0(heldout.read_held_out(path) if exists else None)
        if scores is None:
            scores = distributed.broadcast_from_rank0(self.score(self.policy))
            if distributed.is_rank0():
                heldout.write_held_out(path, scores)
        self.metrics.write("heldout", 0, metrics_log.of_held_out(scores))
        self.watch(self.policy, 0)
        return scores


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of PPO: batches run, and held-out scores before, after and of the best policy."""

    batches: int
    before: HeldOut
    after: HeldOut
    best_batch: int  # 0: the policy before PPO
    best: HeldOut


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


def set_up_torch(seed: int, *, deterministic: bool = True) -> None:
    """Seed every generator, and ask torch for deterministic algorithms if `deterministic`.

    Call this before the first matrix product. An operation without a deterministic implementation
    warns and runs. New tensors are not filled with a known value first: that takes a tenth of a
    step, and no tensor is read before it is written.
    """
    import torch
    from transformers import set_seed

    # oneDNN keeps a kernel for each shape, up to 1,024, and texts of many lengths have many shapes.
    # With 64 of them memory grows a third less, and steps are no slower.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    # cuBLAS is deterministic only with a fixed workspace; it must be set before the first call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    set_seed(seed)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False


def longest_candidate(config: Config) -> int:
    """Return the most tokens of a candidate: `ppo.new_tokens`, or enough for `max_chars`.

    The built-in policy has one token a character; others need at most two.
    """
    tokens = config.policy.max_chars * (1 if config.policy.name == BUILTIN else 2) + 8
    return config.ppo.new_tokens or tokens


def prepare(
    dataset: PairSource,
    config: Config,
    used: Encoder | None,
    out: Path,
    log: Logger,
    watched: tuple[Pair, ...] = (),
) -> Job:
    """Load the policy, map the pairs and draw the held-out sentences; metrics are not logged yet.

    Raises InputError, UsageError and RefusedError.
    """
    state = Path(out).absolute() / STATE
    set_up_torch(config.seed, deterministic=config.deterministic)
    policy = with_adapter(load_policy(config.policy), config.policy)
    limit = config.policy.max_chars
    check_context(policy, "长" * limit, longest_candidate(config))
    heldout_pairs, clean = shards.held_out(dataset, config.data, limit, _HELD_OUT_SEED)
    pairs = training_pairs(dataset, config.data, limit, config.seed)
    pairs = replace(pairs, read=reader(policy))
    longer = dataset.rows(TRAIN) - len(pairs)
    if longer and config.data.limit is None and not config.data.tuning:
        log(f"{longer:,} pairs are left out, because they exceed policy.max_chars = {limit}")
    if not getattr(policy.tokenizer, "chat_template", None):
        log(
            f"{config.policy.name} has no chat template, like most base models. Its prompt is "
            "plain text: the instruction, then the sentence"
        )
    # a run of one kind of steps leaves no targets to PPO alone
    both_kinds = config.ppo.updates and (config.sft.steps or config.ppo.supervised)
    sft_pairs, ppo_pairs = pairs.split(config.ppo.ppo_only_share if both_kinds else 0.0)
    sources = config.ppo.groups * config.ppo.oversampling
    if config.ppo.updates and len(ppo_pairs) < sources:
        raise UsageError(
            f"{len(ppo_pairs)} pairs are too few for a batch of {sources} sources: lower "
            "ppo.groups or ppo.oversampling, or train on more pairs"
        )
    return Job(
        config=config,
        dataset=dataset,
        encoder=used,
        policy=policy,
        sft_pairs=sft_pairs,
        ppo_pairs=ppo_pairs,
        heldout_pairs=heldout_pairs,
        clean=clean,
        watched=watched,
        state=state,
        metrics=MetricsLog(None),
        log=log,
    )


def warm_start(job: Job) -> None:
    """Take the supervised steps, or read the last checkpoint of them."""
    from cectrain.run.supervised import learning_rate, train_sft

    sft = job.config.sft
    if not sft.steps:
        return
    job.score_at_start()
    job.log(f"{sft.steps:,} supervised steps, learning rate {learning_rate(sft, job.policy):.2g}")
    stopwatch = Stopwatch()

    def log(step: int, values: dict[str, float]) -> None:
        values["training_tokens_per_s"] = values.pop("tokens_per_s")
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
    from cectrain.reward.diagnosis import diagnose

    assert job.encoder is not None
    limit, count = config.policy.max_chars, config.diagnose_pairs
    # Of pairs to train on: held-out ones must not decide anything.
    tuning = False if config.data.tuning else None
    pairs = shards.sample(job.dataset, TRAIN, count, config.seed, limit, tuning=tuning)
    diagnosis = diagnose(
        pairs, job.encoder, config.reward, size=config.ppo.candidates, seed=config.seed
    )
    durable.write_text(job.state / "diagnosis.json", json.dumps(encode(diagnosis)) + "\n")
    if config.constants == "auto":
        chosen, reason = diagnosis.favoured, "no others rank right answers above wrong ones better"
    else:
        chosen = "as given" if config.constants == "given" else config.constants
        reason = "the setting `constants` says so"
    reward = diagnosis.rewards[chosen].config
    for line in diagnosis.verdict:
        job.log(line)
    job.log(f"PPO uses the constants {chosen} ({reward.words()}, ε {reward.epsilon:g}): {reason}")
    before, used = asdict(config.reward), asdict(reward)
    replaced = [
        f"reward.{name} = {before[name]:g}" for name in before if before[name] != used[name]
    ]
    if replaced:
        job.log(f"calibration replaces {', '.join(replaced)}: set constants=given to keep them")
    return distributed.broadcast_from_rank0(reward)
