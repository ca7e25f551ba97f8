"""Checks that refuse a run before its first step, and before its folder belongs to it."""

from __future__ import annotations

from importlib.util import find_spec

from cecdata.common.errors import InputError, MissingPackageError, UsageError, how_to_install
from cectrain.config import Config, DataConfig, check_shares
from cectrain.data.shards import HELD_OUT, PairSource
from cectrain.reward.function import functions_of, load
from cectrain.run.ppo import check_trl

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
        check_trl(ppo)


def check_data(dataset: PairSource, config: DataConfig) -> None:
    """Raise InputError if the policy is scored on the validation split and the dataset has none."""
    if not config.tuning and not dataset.rows(HELD_OUT):
        raise InputError(
            f"{dataset.path}: the split {HELD_OUT!r} is empty, but the policy is scored on "
            "it: build with --holdout above 0"
        )
