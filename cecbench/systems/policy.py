"""The policy that `cectrain` trained: a causal language model in the trainer's output folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from cecbench.systems.llm import LlmSystem
from cecbench.systems.options import SystemOptions
from cecdata.errors import InputError

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
        try:
            version = str(json.loads((model / PROMPT_FILE).read_text(encoding="utf-8"))["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{model / PROMPT_FILE} does not name a version ({error})") from None
        options = replace(options, prompt=version)
    return LlmSystem(str(model), options, name="policy")
