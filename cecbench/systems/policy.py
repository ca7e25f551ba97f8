"""A policy of `cectrain`: a causal language model in its output folder, or the one that ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cecbench.systems.answer import System
from cecbench.systems.kind import Kind
from cecbench.systems.llm import LlmOptions, LlmSystem
from cecbench.systems.pieces import InPieces
from cecdata.common.errors import InputError
from cectrain.corrector import folder


def policy_system(rest: str | Path, options: LlmOptions) -> System:
    """The model in a folder or its `model` subfolder, asked with the prompt of its training.

    `builtin` is the one that ships; `./builtin` a folder of that name. Sources that are longer than
    those of its training are asked in pieces: what is scored is what `cectrain correct` answers.
    """
    name = str(rest)
    model = Path(folder.model_folder(name) or "")
    if not (model / "config.json").is_file():
        raise InputError(
            f"{name} holds no model (no config.json there or in its `model` folder): "
            "name the output folder of a finished `cectrain` run, or policy:builtin"
        )
    options = replace(options, prompt=folder.trained_prompt(name))
    folder.check_template(model)
    longest = folder.longest_source(name)
    called = folder.BUILTIN if name == folder.BUILTIN else "policy"
    made = LlmSystem(str(model), options, name=called)
    return made if longest is None else InPieces(made, longest)


KIND = Kind(
    "policy:DIR",
    "an output folder of `cectrain`; policy:builtin is what ships",
    LlmOptions,
    lambda argument, options, _: policy_system(argument, options),
)
