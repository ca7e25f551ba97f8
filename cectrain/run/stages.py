"""The stages of a training run around PPO, each resumable, and the inputs that they share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cecdata.common import durable
from cecdata.common.codec import Json, encode
from cecdata.common.durable import STATE, Workspace
from cecdata.embed import Encoder, encoder
from cectrain import distributed
from cectrain.config import Config, RewardConfig, SftConfig
from cectrain.corrector.folder import MODEL, weights_sha256
from cectrain.corrector.policy import Policy, check_context, reader
from cectrain.data import shards
from cectrain.data.shards import TRAIN, Pair, PairSource
from cectrain.data.training_pairs import TrainingPairs, training_pairs
from cectrain.model.policy import load_policy, save_model, with_adapter
from cectrain.run import heldout, metrics_log, preflight, results
from cectrain.run.grpo_settings import longest_candidate
from cectrain.run.heldout import HeldOut
from cectrain.run.metrics_log import Logger, MetricsLog, Stopwatch

_AT_START = "at_start.json"  # held-out scores before the warm start
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
    state: Path
    metrics: MetricsLog
    log: Logger

    def score(self, policy: Policy) -> HeldOut:
        """Return the policy's scores on the held-out sentences."""
        return heldout.evaluate(policy, self.heldout_pairs, self.clean)

    def score_at_start(self) -> None:
        """Keep the scores of the policy that the run starts from, for the summary."""
        path = self.state / _AT_START
        if distributed.is_rank0() and not path.is_file():
            heldout.write_held_out(path, self.score(self.policy))

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


def prepare(
    dataset: PairSource,
    config: Config,
    used: Encoder | None,
    out: Path,
    begin: Callable[[], MetricsLog],
    log: Logger,
) -> Job:
    """Load the policy, map the pairs and draw the held-out sentences.

    `begin` opens the metrics log in `out`, which binds the folder to this run, so it is called
    last, when nothing can be refused any more. Raises InputError, UsageError and RefusedError.
    """
    state = Path(out).absolute() / STATE
    set_up_torch(config.seed, deterministic=config.deterministic)
    policy = with_adapter(load_policy(config.policy), config.policy)
    limit = config.policy.max_chars
    check_context(policy, "长" * limit, longest_candidate(config))
    heldout_pairs, clean = shards.held_out(dataset, config.data, limit, _HELD_OUT_SEED)
    pairs = training_pairs(dataset, config.data, limit, config.seed, state / "arrow")
    read = reader(policy)
    unread, examples = pairs.unread(read)
    if unread:
        log(
            f"{unread:,} of {len(pairs):,} pairs have characters that the policy cannot read "
            f"({examples}): it reads others in their place, as in `cectrain correct`"
        )
    pairs = replace(pairs, read=read)
    longer = dataset.rows(TRAIN) - len(pairs)
    if longer and config.data.limit is None and not config.data.tuning:
        log(f"{longer:,} pairs are left out, because they exceed policy.max_chars = {limit}")
    if not getattr(policy.tokenizer, "chat_template", None):
        log(
            f"{config.policy.name} has no chat template, like most base models. Its prompt is "
            "plain text: the instruction, then the sentence"
        )
    sft_pairs, ppo_pairs = pairs.split(_ppo_only_share(config))
    preflight.check_ppo(config, ppo_pairs)
    return Job(
        config=config,
        dataset=dataset,
        encoder=used,
        policy=policy,
        sft_pairs=sft_pairs,
        ppo_pairs=ppo_pairs,
        heldout_pairs=heldout_pairs,
        clean=clean,
        state=state,
        metrics=begin(),
        log=log,
    )


def warm_start(job: Job) -> None:
    """Take the supervised steps, or read the last checkpoint of them."""
    from cectrain.supervised.loop import learning_rate, train_sft

    sft, own = job.config.sft, learning_rate(SftConfig(), job.policy)
    if not sft.steps:
        return
    job.score_at_start()
    job.log(f"{sft.steps:,} supervised steps, learning rate {learning_rate(sft, job.policy):.2g}")
    if sft.learning_rate is not None and sft.learning_rate > 5 * own:
        job.log(f"sft.learning_rate is high for this policy; the default is {own:.2g}")
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
        name = config.reward.reward or f"the {config.reward.kind} vote"
        job.log(f"the reward is {name}, which uses no α, τ, β, ε and no reward.unchanged")
        return config.reward
    if not distributed.is_rank0():
        return distributed.broadcast_from_rank0(config.reward)
    from cectrain.diagnosis.diagnose import diagnose
    from cectrain.diagnosis.measures import choice_reason

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
        chosen, reason = diagnosis.favoured, choice_reason(diagnosis.rewards)
    else:
        chosen = "as given" if config.constants == "given" else config.constants
        reason = "the setting `constants` says so"
    reward = diagnosis.rewards[chosen].config
    for line in diagnosis.verdict:
        job.log(line)
    job.log(f"PPO uses the constants {chosen} ({reward.words()}, ε {reward.epsilon:g}): {reason}")
    given, used = asdict(config.reward), asdict(reward)
    replaced = [f"reward.{name} = {given[name]:g}" for name in given if given[name] != used[name]]
    if replaced:
        job.log(f"calibration replaces {', '.join(replaced)}: set constants=given to keep them")
    return distributed.broadcast_from_rank0(reward)


def _ppo_only_share(config: Config) -> float:
    """Return the share of targets for PPO alone; 0 if the run has only one kind of steps."""
    supervised = config.sft.steps or config.ppo.supervised
    return config.ppo.ppo_only_share if supervised and config.ppo.updates else 0.0


def publish(
    work: Workspace | None, job: Job, reward: RewardConfig, trained: Trained, seconds: float
) -> dict[str, Json]:
    """Write the model, `heldout.jsonl` and `summary.json`; return the summary, {} off rank 0."""
    if work is None:
        return {}
    job.metrics.write("heldout", trained.batches, metrics_log.of_held_out(trained.after))
    facts = summary(job, trained, reward, seconds=seconds)
    staged = f"{STATE}/{MODEL}"
    kept = job.config.policy.save_dtype
    save_model(trained.policy, work.root / staged, facts, "" if kept == "float32" else kept)
    work.publish(staged, MODEL)
    facts["model_sha256"] = weights_sha256(work.root / MODEL)
    work.write_text(results.ANSWERS, _answers(job, trained))
    return results.write_summary(work, facts)


def summary(job: Job, trained: Trained, reward: RewardConfig, *, seconds: float) -> dict[str, Json]:
    """Return the facts of the run for scripts. Rates are fractions, None without a denominator.

    `ppo_batches` is the number that were run, fewer than `ppo.updates` if the run was stopped.
    `seconds` is the time of this call, `cpu_seconds` and `gpu_seconds` are those of all steps that
    led to the finished weights.
    """
    before, after, path = trained.before, trained.after, job.state / _AT_START
    start = heldout.read_held_out(path) if path.is_file() else None
    alone = job.ppo_pairs is not job.sft_pairs  # pairs that only PPO uses
    gpu = metrics_log.total(job.metrics.path, "gpu_seconds")
    return {
        "heldout_exact_after_sft": before.exact,
        "heldout_exact_after_ppo": after.exact,
        "heldout_overcorrection_after_sft": before.over_correction,
        "heldout_overcorrection_after_ppo": after.over_correction,
        "heldout_at_start": encode(metrics_log.of_held_out(start)) if start else None,
        "heldout_after_sft": encode(metrics_log.of_held_out(before)),
        "heldout_after_ppo": encode(metrics_log.of_held_out(after)),
        "heldout_rows": after.rows,
        "seeds": [job.config.seed],
        "seconds": round(seconds, 1),
        "sft_steps": job.config.sft.steps,
        "ppo_batches": trained.batches,
        "parameters": job.policy.model.num_parameters(),
        "training_pairs": len(job.ppo_pairs) + (len(job.sft_pairs) if alone else 0),
        "ppo_only_pairs": len(job.ppo_pairs) if alone else 0,
        "reward": encode(reward),
        "cpu_seconds": metrics_log.total(job.metrics.path, "cpu_seconds"),
        **({"gpu_seconds": gpu} if gpu else {}),
    }


def _answers(job: Job, trained: Trained) -> str:
    """Return one JSON object a line: a held-out sentence, and the answers before and after PPO."""
    sentences = [(pair.source, pair.target, pair.operator) for pair in job.heldout_pairs]
    sentences += [(text, text, "clean") for text in job.clean]
    answers = zip(trained.before.answers, trained.after.answers, strict=True)
    names = ("source", "target", "operator", "before", "after")
    lines = [
        json.dumps(dict(zip(names, (*sentence, *both), strict=True)), ensure_ascii=False)
        for sentence, both in zip(sentences, answers, strict=True)
    ]
    return "".join(line + "\n" for line in lines)
