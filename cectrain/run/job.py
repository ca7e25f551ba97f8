"""What the stages of a run share: the policy, its pairs, the held-out sentences and the log."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cecdata.common.durable import STATE
from cecdata.common.errors import UsageError
from cecdata.embed import Encoder
from cectrain import distributed
from cectrain.config import Config
from cectrain.corrector.folder import BUILTIN
from cectrain.corrector.policy import Policy, check_context, make_reader
from cectrain.data import shards
from cectrain.data.shards import TRAIN, Pair, PairSource
from cectrain.data.training_pairs import TrainingPairs, select_pairs
from cectrain.model.policy import add_adapter, load_policy
from cectrain.run import heldout, metrics_log
from cectrain.run.heldout import HeldOut
from cectrain.run.metrics_log import Logger, MetricsLog

AT_START = "at_start.json"  # held-out scores before the warm start
_HELD_OUT_SEED = 42  # for every run, so that runs of several seeds are scored on the same sentences


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
        return heldout.evaluate(policy, self.heldout_pairs, self.clean)

    def score_at_start(self) -> None:
        """Keep the scores of the policy that the run starts from, for the summary."""
        path = self.state / AT_START
        if distributed.is_rank0() and not path.is_file():
            heldout.write_held_out(path, self.score(self.policy))

    def watch(self, policy: Policy, batch: int) -> None:
        """Log the policy's scores on the watched pairs."""
        if self.watched and distributed.is_rank0():
            # as the published one, which corrects a longer text in parts
            policy = replace(policy, max_chars=self.config.policy.max_chars)
            scores = heldout.evaluate_as_used(policy, self.watched)
            self.metrics.write("watch", batch, metrics_log.name_figures(scores))

    def score_before_ppo(self) -> HeldOut:
        """Return and log the scores before PPO; a resumed run reads those that it kept."""
        path = self.state / "after_sft.json"
        exists = distributed.is_rank0() and path.is_file()
        scores = distributed.broadcast_from_rank0(heldout.read_held_out(path) if exists else None)
        if scores is None:
            scores = distributed.broadcast_from_rank0(self.score(self.policy))
            if distributed.is_rank0():
                heldout.write_held_out(path, scores)
        self.metrics.write("heldout", 0, metrics_log.name_figures(scores))
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
    torch.backends.cuda.enable_cudnn_sdp(not deterministic)  # its backward pass varies


def find_longest_candidate(config: Config) -> int:
    """Return how many tokens a candidate may have: `ppo.new_tokens`, or enough for `max_chars`.

    The built-in policy has one token a character; others need at most two.
    """
    per_character = 1 if config.policy.name == BUILTIN else 2
    return config.ppo.new_tokens or config.policy.max_chars * per_character + 8  # some to spare


def prepare_job(
    dataset: PairSource,
    config: Config,
    encoder: Encoder | None,
    out: Path,
    log: Logger,
    open_metrics: Callable[[], MetricsLog],
    watched: tuple[Pair, ...] = (),
) -> Job:
    """Load the policy, map the pairs and draw the held-out sentences, then call `open_metrics`.

    Raises InputError, UsageError and RefusedError, all before that call.
    """
    set_up_torch(config.seed, deterministic=config.deterministic)
    policy = add_adapter(load_policy(config.policy), config.policy)
    limit = config.policy.max_chars
    check_context(policy, "长" * limit, find_longest_candidate(config))
    heldout_pairs, clean = shards.draw_held_out(dataset, config.data, limit, _HELD_OUT_SEED)
    log(
        f"{len(heldout_pairs):,} held-out pairs and {len(clean):,} right sentences are scored, "
        f"none of them longer than policy.max_chars = {limit}"
    )
    pairs = select_pairs(dataset, config.data, limit, config.seed)
    pairs = replace(pairs, read=make_reader(policy))
    longer = dataset.rows(TRAIN) - len(pairs)
    if longer and config.data.limit is None and not config.data.tuning:
        log(f"{longer:,} pairs are left out, because they exceed policy.max_chars = {limit}")
    if not getattr(policy.tokenizer, "chat_template", None):
        log(
            f"{config.policy.name} has no chat template, like most base models. Its prompt is "
            "plain text: the instruction, then the sentence"
        )
    sft_pairs, ppo_pairs = _split_pairs(pairs, config)
    return Job(
        config=config,
        dataset=dataset,
        encoder=encoder,
        policy=policy,
        sft_pairs=sft_pairs,
        ppo_pairs=ppo_pairs,
        heldout_pairs=heldout_pairs,
        clean=clean,
        watched=watched,
        state=Path(out).absolute() / STATE,
        metrics=open_metrics(),
        log=log,
    )


def _split_pairs(pairs: TrainingPairs, config: Config) -> tuple[TrainingPairs, TrainingPairs]:
    """Return the pairs of supervised steps and those of PPO; raise UsageError for too few."""
    # Only where there are supervised steps can pairs be kept from them.
    both_kinds = config.ppo.updates and (config.sft.steps or config.ppo.supervised)
    sft_pairs, ppo_pairs = pairs.split(config.ppo.ppo_only_share if both_kinds else 0.0)
    sources = config.ppo.groups * config.ppo.oversampling
    if config.ppo.updates and len(ppo_pairs) < sources:
        raise UsageError(
            f"{len(ppo_pairs)} pairs are too few for a batch of {sources} sources: lower "
            "ppo.groups or ppo.oversampling, or train on more pairs"
        )
    return sft_pairs, ppo_pairs
