"""The folder of a policy: the built-in one, a run's or a model's."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from cecdata.common.codec import parse
from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, VerificationError
from cecdata.models import prompts
from cecdata.models.causal import PROMPT_FILE, is_built_in_kind, read_prompt_record

CHANNEL = "channel"  # the noisy channel alone
COMBINED = "combined"  # the channel and a policy; combined:FOLDER takes another policy
BUILTIN = "builtin"  # the policy that ships, alone
WEIGHTS = Path(str(files("cectrain"))) / "weights"  # of the built-in policy
RUN, MODEL = "run.json", "model"  # in a run's folder: its settings, and the model that it trained
SUMMARY = "summary.json"  # there, too, once the run is finished
BUILTIN_CHARS = 128  # longest sentence of the built-in policy's last training


def locate_model(name: str) -> str:
    """Return what to load a policy from: the shipped weights for `builtin`, the `model` folder of a
    run, else the name itself (a folder or a hub id).
    """
    if name == BUILTIN:
        return str(WEIGHTS)
    inner = Path(name) / MODEL
    return str(inner) if (inner / "config.json").is_file() else name


def hash_weights(folder: Path) -> str:
    """Return one SHA-256 of the names and contents of a folder's safetensors files."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        total.update(f"{path.name} ".encode())
        total.update(bytes.fromhex(sha256_of(path).sha256))
    return total.hexdigest()


def _read_record(name: str, file: str) -> Any:
    """Return a record of a run's folder; an empty one without the file, or where no run is named.

    `builtin` never is one, whatever lies in the working directory.
    """
    path = Path(name) / file
    if name == BUILTIN or not (Path(name) / MODEL).is_dir() or not path.is_file():
        return {}
    try:
        return parse(path.read_bytes())
    except ValueError as error:
        raise _explain_damage(path, str(error)) from error


def check_weights(name: str) -> None:
    """Raise VerificationError where a run's weights are not those that its summary records."""
    summary, model = _read_record(name, SUMMARY), Path(name) / MODEL
    recorded = summary.get("model_sha256") if isinstance(summary, dict) else None
    if recorded is not None and recorded != hash_weights(model):
        raise _explain_damage(model, f"the weights differ from those in {SUMMARY}")


def read_prompt(name: str) -> str:
    """Return the prompt version that a policy was trained with; the default without a prompt.json.

    Raises InputError for a prompt.json without a version.
    """
    path = Path(locate_model(name)) / PROMPT_FILE
    if not path.is_file():
        return prompts.DEFAULT
    version = read_prompt_record(path).get("version")
    if not isinstance(version, str):
        raise InputError(f'{path} has no prompt version: the file must hold {{"version": "1"}}')
    return version


def read_longest_source(name: str) -> int | None:
    """Return the most characters that a policy reads at once, or None where nothing limits it.

    It is the longest source of the training run; for a model of the built-in kind without a run,
    the longest sentence of its pretraining. Raises VerificationError where run.json is damaged.
    """
    longest = _read_trained_max_chars(name)
    if longest is None and is_built_in_kind(Path(locate_model(name))):
        return BUILTIN_CHARS
    return longest


def _read_trained_max_chars(name: str) -> int | None:
    """Return `policy.max_chars` of a run; None without one."""
    try:
        record = _read_record(name, RUN)
        longest = record.get("configuration", {}).get("policy", {}).get("max_chars")
    except AttributeError:  # not objects in objects
        longest = 0
    if longest is not None and (not isinstance(longest, int) or longest < 1):
        raise _explain_damage(Path(name) / RUN, f"policy.max_chars is {longest!r}")
    return longest


def _explain_damage(path: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({why}): copy the run again, or name its folder `{MODEL}` instead"
    )
