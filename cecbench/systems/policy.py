"""A policy of `cectrain`: a causal language model in its output folder, or the one that ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cecbench.systems.llm import LlmSystem
from cecbench.systems.options import SystemOptions
from cecdata.errors import InputError
from cecdata.strictjson import parse

BUILTIN = "builtin"
#: cecbench does not import cectrain; the weights lie beside it in every copy of this project
SHIPPED = Path(__file__).parents[2] / "cectrain" / "weights"
PROMPT_FILE = "prompt.json"  # {"version": "1"}: what the policy was trained with


def policy_system(rest: str | Path, options: SystemOptions) -> LlmSystem:
    """The model in a folder or its `model` subfolder, asked with the prompt of its training.

    `builtin` is the one that ships; `./builtin` a folder of that name.
    """
    folder = SHIPPED if rest == BUILTIN else Path(rest)
    model = next((f for f in (folder, folder / "model") if (f / "config.json").is_file()), None)
    if model is None:
        raise InputError(
            f"{folder} holds no model (no config.json there or in its `model` folder): "
            "name the output folder of a finished `cectrain` run, or policy:builtin"
        )
    if (model / PROMPT_FILE).is_file():
        options = replace(options, prompt=prompt_version(model / PROMPT_FILE))
    return LlmSystem(str(model), options, name=BUILTIN if folder == SHIPPED else "policy")


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
