"""The stages of a training run, each resumable; PPO itself is in ppo.py."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench.systems.models import checkpoint_identity
from cecdata.common import durable
from cecdata.common.codec import Json, encode
from cecdata.common.errors import UsageError
from cecdata.embed import Encoder, encoder
from cecdata.shards.reader import Dataset
from cectrain.config import Config, PolicyConfig
from cectrain.data import shards
from cectrain.data.shards import TRAIN, Pair
from cectrain.data.training_pairs import TrainingPairs, training_pairs
from cectrain.model import heldout
from cectrain.model.heldout import HeldOut, read_held_out, write_held_out
from cectrain.model.policy import BUILTIN, Policy, check_context, folder_of, load_policy
from cectrain.reward.terms import RewardConfig
from cectrain.run import distributed, preflight, reproducibility
from cectrain.store import checkpoints, metrics_log
from cectrain.store.metrics_log import MetricsLog

if TYPE_CHECKING:
    from cecdata.embed.cache import Cache

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What all stages share. `state` is the folder for what only the run itself reads."""

    config: Config
    dataset: Dataset
    policy: Policy
    taught: TrainingPairs  # of supervised steps
    pairs: TrainingPairs  # of PPO
    watched: tuple[Pair, ...]
    clean: tuple[str, ...]
    state: Path
    log: MetricsLog
    tell: Tell

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return reproducibility.main_process()

    def evaluate(self, policy: Policy | None = None) -> HeldOut:
        """Held-out scores of a policy, by default the job's own as it is now."""
        return heldout.evaluate(policy or self.policy, self.watched, self.clean)

    def before(self, evaluate: Callable[[], HeldOut]) -> HeldOut:
        """Held-out scores before PPO, logged; a resumed run reads them instead."""
        path = self.state / "after_sft.json"
        kept = self.first and path.is_file()
        found = distributed.of_the_first(read_held_out(path) if kept else None)
        if found is None:
            found = evaluate()
            if self.first:
                write_held_out(path, found)
        self.log.write("heldout", 0, metrics_log.of_held_out(found))
        return found


@dataclass(frozen=True, slots=True)
class Trained:
    """What PPO leaves: how many batches were run, the scores around them, the policy, whole."""

    batches: int
    before: HeldOut
    after: HeldOut
    policy: Policy


def identity(config: Config, dataset: Dataset) -> dict[str, object]:
    """What must be the same for a run to go on: settings, shards, all weights, versions."""
    # what a name stands for may change: the shipped weights with the version, a folder any time
    name = config.policy.name
    where = folder_of(name)
    start = checkpoint_identity(where, None) if where else {}
    if where != name:
        start["checkpoint"] = Path(name).name
    # the same server may have another address tomorrow
    anywhere = replace(config, ppo=replace(config.ppo, vllm_url=""))
    return {
        "configuration": anywhere.as_dict(),
        "data": reproducibility.data_identity(dataset),
        "policy": start,
        "encoder": load_encoder(config.encoder).fingerprint,
        "versions": reproducibility.versions(),
        "processes": reproducibility.processes(),
    }


def prepare(
    dataset: Dataset, config: Config, state: Path, begin: Callable[[], MetricsLog], tell: Tell
) -> Job:
    """Loads the policy, maps the pairs, draws what is held out; refuses what cannot work.

    `begin` opens the log once nothing is refused: it binds the folder to this run.
    """
    reproducibility.keep_few_kernels()
    reproducibility.set_all_seeds(config.seed)
    policy = load_policy(config.policy, config.seed, distributed.load_on())
    if not policy.trained and not config.sft.steps and config.ppo.updates:
        raise UsageError(
            "the built-in policy has no shipped weights here and PPO cannot start from random "
            "ones: set sft.steps, or name a trained policy with --policy"
        )
    policy = with_adapter(policy, config.policy)
    limit = config.policy.max_chars
    check_context(policy, "长" * limit, new_tokens(config))
    watched, clean = shards.held_out(dataset, config.data, limit, config.seed)
    pairs = training_pairs(dataset, config.data, limit, config.seed, state / "arrow")
    taught, left = pairs.parted(_left_to_ppo(config))
    preflight.check_made(config, policy, left, reproducibility.processes())
    return Job(
        config, dataset, policy, taught, left, watched, clean, state, begin(), tell,
    )  # fmt: skip


def warm_start(job: Job) -> None:
    """The supervised steps, if any; on a resume their last checkpoint is read instead."""
    from cectrain.supervised.sft import train_sft

    if job.config.sft.steps:
        job.tell(f"warm start: {job.config.sft.steps:,} supervised steps")

        used = time.process_time()

        def log(step: int, values: dict[str, float]) -> None:
            nonlocal used
            values["training_tokens_per_s"] = values.pop("tokens_per_s")
            before, used = used, time.process_time()
            job.log.write("sft", step, {**values, "cpu_seconds": used - before})

        train_sft(job.policy, job.taught, job.config.sft, job.state / "sft", log)


def choose_constants(job: Job, used: Encoder) -> tuple[RewardConfig, list[str]]:
    """The reward's constants and the diagnosis' words; the choice itself is the last line."""
    from cectrain.diagnosis.diagnose import diagnose
    from cectrain.diagnosis.measures import why

    config = job.config
    if not config.ppo.updates:
        return config.reward, []  # nothing is rewarded
    if config.reward.kind != "consensus":
        return config.reward, [f"the reward is the {config.reward.kind} vote: no constants"]
    # Of the training split: what is held out decides nothing.
    limit = config.policy.max_chars
    found = diagnose(
        shards.sample(job.dataset, TRAIN, config.diagnose_pairs, config.seed, limit),
        used,
        config.reward,
        train_pairs=len(job.pairs),
        size=config.ppo.candidates,
        seed=config.seed,
    )
    if job.first:
        durable.write_text(job.state / "diagnosis.json", json.dumps(encode(found)) + "\n")
    chosen = {"auto": found.favoured, "given": "as given"}.get(config.constants, config.constants)
    reward = found.rewards[chosen].config
    reason = {
        "auto": why(found.rewards),
        "given": "the configuration says so (constants = given)",
        "calibrated": "the configuration says so (constants = calibrated)",
    }[config.constants]
    line = (
        f"constants {chosen}: {reward.words()}, ε {reward.epsilon:g} {reward.metric}, "
        f"because {reason}"
    )
    return reward, [*found.verdict, line]


def resumed_steps(config: Config, state: Path) -> tuple[int, int]:
    """Supervised steps and PPO batches that whole checkpoints hold."""
    done = []
    for name in ("sft", "ppo"):
        found = checkpoints.newest(state / name)
        step = found[1]["step"] if found else 0
        assert isinstance(step, int)
        done.append(step)
    return done[0], done[1] // (config.ppo.epochs * config.ppo.minibatches)


def summary(
    job: Job, made: Trained, reward: RewardConfig, *, seconds: float
) -> dict[str, Json]:
    """What scripts read. Rates are fractions; null where nothing could be divided.

    `ppo_batches` were run, fewer than were asked for where the run was stopped. `seconds` are
    those of all calls, `cpu_seconds` of the steps that the finished weights are made of.
    """
    before, after = made.before, made.after
    return {
        "heldout_exact_after_sft": before.exact,
        "heldout_exact_after_ppo": after.exact,
        "heldout_overcorrection_after_sft": before.over_correction,
        "heldout_overcorrection_after_ppo": after.over_correction,
        "heldout_after_sft": encode(metrics_log.of_held_out(before)),
        "heldout_after_ppo": encode(metrics_log.of_held_out(after)),
        "heldout_rows": after.rows,
        "seeds": [job.config.seed],
        "seconds": round(seconds, 1),
        "sft_steps": job.config.sft.steps,
        "ppo_batches": made.batches,
        "parameters": job.policy.model.num_parameters(),
        "training_pairs": _distinct(job.taught, job.pairs),
        "unseen_pairs": len(job.pairs) if job.taught is not job.pairs else 0,
        "reward": encode(reward),
        "cpu_seconds": metrics_log.total(job.log.path, "cpu_seconds"),
    }


def _left_to_ppo(config: Config) -> float:
    """The share of the targets that only PPO sees; 0 where one of the two kinds of steps is off."""
    taught = config.sft.steps or config.ppo.supervised
    return config.ppo.unseen if taught and config.ppo.updates else 0.0


def _distinct(taught: TrainingPairs, left: TrainingPairs) -> int:
    return len(left) if taught is left else len(taught) + len(left)


def new_tokens(config: Config) -> int:
    """The longest candidate: a token a character for the built-in policy, else up to two."""
    by_length = config.policy.max_chars * (1 if config.policy.name == BUILTIN else 2) + 8
    return config.ppo.new_tokens or by_length


def with_adapter(policy: Policy, config: PolicyConfig) -> Policy:
    """The policy with a LoRA adapter on all its linear layers, where a rank is set."""
    if not config.lora_rank:
        return policy
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    model = policy.model
    if config.quantise:
        model = prepare_model_for_kbit_training(model)
    adapter = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return replace(policy, model=get_peft_model(model, adapter))


def open_cache(config: Config, used: Encoder) -> Cache | None:
    """The embedding cache that the configuration names, if any.

    Raises InputError where none is, RefusedError where another encoder wrote it.
    """
    from cecdata.embed.cache import Cache

    if not config.data.cache:
        return None
    return Cache.open(
        Path(config.data.cache), fingerprint=used.fingerprint, dimension=used.dimension
    )


def load_encoder(name: str) -> Encoder:
    """The sentence encoder of the reward."""
    return encoder(name)
