"""The policy that `cectrain` trained: a causal language model in the trainer's output folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cecbench.systems.llm import LlmSystem
from cecbench.systems.options import SystemOptions
from cecdata.errors import InputError
from cecdata.strictjson import parse

PROMPT_FILE = "prompt.json"  # {"version": "1"}: what the policy was trained with


def policy_system(folder: Path, options: SystemOptions) -> LlmSystem:
    """The model in `folder` or its `model` subfolder, asked with the prompt of its training."""
    model = next((f for f in (folder, folder / "model") if (f / "config.json").is_file()), None)
    if model is None:
        raise InputError(
            f"{folder} holds no model (no config.json there or in its `model` folder): "
            "name the output folder of a finished `cectrain` run"
        )
    if (model / PROMPT_FILE).is_file():
        options = replace(options, prompt=prompt_version(model / PROMPT_FILE))
    return LlmSystem(str(model), options, name="policy")


def prompt_version(path: Path) -> str:
    """The version that a prompt.json names; InputError where it names none."""
    try:
        found = parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} does not name a version ({error})") from None
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(version, str):
        raise InputError(f'{path} does not name a version: {{"version": "1"}} is wanted')
    return version
