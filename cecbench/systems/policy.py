"""A policy of `cectrain`: a causal language model in its output folder, or the one that ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cecbench.systems.answer import System
from cecbench.systems.llm import LlmSystem
from cecbench.systems.options import SystemOptions
from cecbench.systems.pieces import InPieces
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.strict_json import parse

BUILTIN = "builtin"
#: cecbench does not import cectrain; the weights lie beside it in every copy of this project
SHIPPED = Path(__file__).parents[2] / "cectrain" / "weights"
#: {"version": "1", "template": true}: what the policy was trained with; the first had no template
PROMPT_FILE = "prompt.json"
RUN, MODEL = "run.json", "model"  # of a run's folder: its settings, and what it made
BUILTIN_CHARS = 64  # the longest sentence that the built-in kind was pretrained with
_MARKS = (b'"<|source|>"', b'"<|target|>"')  # what the built-in kind's template is made of
_TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")


def policy_system(rest: str | Path, options: SystemOptions) -> System:
    """The model in a folder or its `model` subfolder, asked with the prompt of its training.

    `builtin` is the one that ships; `./builtin` a folder of that name. Sources that are longer than
    those of its training are asked in pieces: what is scored is what `cectrain correct` answers.
    """
    folder = SHIPPED if rest == BUILTIN else Path(rest)
    model = next((f for f in (folder, folder / MODEL) if (f / "config.json").is_file()), None)
    if model is None:
        raise InputError(
            f"{folder} holds no model (no config.json there or in its `model` folder): "
            "name the output folder of a finished `cectrain` run, or policy:builtin"
        )
    if (model / PROMPT_FILE).is_file():
        options = replace(options, prompt=prompt_version(model / PROMPT_FILE))
    check_template(model)
    longest = trained_max_chars(folder) or (BUILTIN_CHARS if _built_in_kind(model) else None)
    made = LlmSystem(str(model), options, name=BUILTIN if folder == SHIPPED else "policy")
    return made if longest is None else InPieces(made, longest)


def trained_max_chars(folder: Path) -> int | None:
    """The longest source that a run's folder was trained with; None where none says.

    Raises VerificationError where run.json is damaged.
    """
    told = folder / RUN
    if not told.is_file() or not (folder / MODEL).is_dir():
        return None
    try:
        found = parse(told.read_bytes())
    except ValueError as error:
        raise _damaged(told, str(error)) from error
    for name in ("configuration", "policy", "max_chars"):
        if not isinstance(found, dict):
            raise _damaged(told, f"no object holds {name}")
        if name not in found:
            return None
        found = found[name]
    if not isinstance(found, int) or found < 1:
        raise _damaged(told, f"policy.max_chars is {found!r}")
    return found


def prompt_version(path: Path) -> str:
    """The version that a prompt.json names; InputError where it names none."""
    version = _read(path).get("version")
    if not isinstance(version, str):
        raise InputError(f'{path} does not name a version: {{"version": "1"}} is wanted')
    return version


def check_template(folder: Path) -> None:
    """InputError where the folder lacks a chat template that prompt.json tells of, or that its kind
    has never been without.

    Without it the policy would be asked in words that it never saw.
    """
    told = folder / PROMPT_FILE
    used = _read(told).get("template", False) if told.is_file() else False
    if not isinstance(used, bool):
        raise InputError(f"{told}: template is true or false, not {used!r}")
    settings = folder / "tokenizer_config.json"
    inside = settings.is_file() and b'"chat_template"' in settings.read_bytes()
    if inside or any((folder / name).exists() for name in _TEMPLATES):
        return
    if _built_in_kind(folder):
        raise InputError(
            f"{folder} lacks chat_template.jinja, and its tokens are the built-in policy's, which "
            "is always asked through one: copy the folder again, whole"
        )
    if used:
        raise InputError(
            f"{folder} lacks chat_template.jinja, which its policy was trained with: copy the "
            "folder again, whole"
        )


def _built_in_kind(folder: Path) -> bool:
    tokens = folder / "tokenizer.json"
    return tokens.is_file() and all(mark in tokens.read_bytes() for mark in _MARKS)


def _read(path: Path) -> dict[str, object]:
    try:
        found = parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} does not name a version ({error})") from None
    return dict(found) if isinstance(found, dict) else {}


def _damaged(told: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{told}: damaged ({why}): copy the run again, or name its {MODEL} folder"
    )
