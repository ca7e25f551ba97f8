"""What would end a run later, said before its folder is bound to it, or before its first step."""

from __future__ import annotations

from importlib.util import find_spec

from cecdata.common.errors import InputError, MissingPackageError, UsageError, how_to_install
from cecdata.shards.reader import Dataset
from cectrain.config import Config, check_shares
from cectrain.data.shards import HELD_OUT
from cectrain.data.training_pairs import TrainingPairs
from cectrain.model.policy import Policy, load_policy
from cectrain.run.grpo_settings import may_draft

#: what a reporter of the settings imports, one of them
_IMPORTS = {"tensorboard": ("tensorboard", "tensorboardX")}


def check_settings(config: Config, processes: int) -> None:
    """Raises UsageError where processes cannot share the work, MissingPackageError by name."""
    if config.policy.lora_rank:
        _need("policy.lora_rank", "peft", how_to_install("train"))
    if config.policy.quantise:
        _need("policy.quantise", "bitsandbytes", "run pip install bitsandbytes")
    ppo = config.ppo
    if processes > 1 and config.sft.steps:
        raise UsageError("the warm start runs on one process: run `cectrain sft` before, alone")
    if not ppo.updates:
        return
    if processes > 1 and ppo.supervised:
        raise UsageError("ppo.supervised runs on one process: its gradients are not shared out")
    check_shares(ppo, processes)
    for name in ppo.report_to:
        _need("ppo.report_to", name, f"run pip install {name}", *_IMPORTS.get(name, ()))
    if ppo.vllm == "colocate" and processes % ppo.vllm_parallel:
        raise UsageError(
            f"ppo.vllm_parallel = {ppo.vllm_parallel}: {processes} processes cannot be parted into "
            "groups of so many"
        )
    if ppo.vllm != "off":
        _need("ppo.vllm", "vllm", how_to_install("vllm"))


def check_loads(config: Config) -> None:
    """Raise the error of a policy or a cache that cannot be read, before anything is removed."""
    from cectrain.run.stages import load_encoder, open_cache

    load_policy(config.policy, config.seed, "cpu")
    open_cache(config, load_encoder(config.encoder))


def check_data(dataset: Dataset) -> None:
    """Raises InputError where nothing could be watched."""
    if not dataset.rows(HELD_OUT):
        raise InputError(
            f"{dataset.path}: the split {HELD_OUT!r} is empty, so nothing could be watched: build "
            "with --holdout above 0"
        )


def check_made(config: Config, policy: Policy, pairs: TrainingPairs, processes: int) -> None:
    """Raises UsageError where PPO cannot work with this policy, or with so few pairs."""
    from cectrain.data.sampler import check_fill

    if not config.ppo.updates:
        return
    check_fill(len(pairs), config.ppo.groups * config.ppo.scan)
    if config.ppo.kl and not policy.trained and not config.policy.lora_rank:
        raise UsageError(
            f"ppo.kl = {config.ppo.kl:g}: the reference is read from a folder, and random weights "
            "lie in none: run `cectrain sft` first, and name its folder with --policy"
        )
    may_draft(config.ppo, policy.model, processes)


def _need(setting: str, package: str, how: str, *any_of: str) -> None:
    if not any(find_spec(name) for name in any_of or (package,)):
        raise MissingPackageError(
            f"{setting} needs {package}, which is not installed: {how}, or leave the setting out"
        )
