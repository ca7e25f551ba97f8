"""GGUF files as folders with safetensors in the user's cache, because reading them takes minutes.

The vocabulary there is that of Chinese text. A folder is named by the digest of its file. Its
record names the file and has a digest of what is in the folder; one that differs is made again.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common import durable
from cecdata.common.codec import parse
from cecdata.common.durable.files import has_ended, naming_errors
from cecdata.common.errors import CecError
from cecdata.common.machine import find_user_folder
from cecdata.common.progress import say
from cecdata.models.hub import hash_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_RECORD = ".record.json"  # hidden, so that it is no part of the digest


def find_conversion(file: Path) -> Path | None:
    """Return the folder with the weights of a GGUF file; None without one that is whole."""
    folder = _find_folder(file)
    try:
        whole = _read_record(folder)["sha256"] == hash_model(folder)
    except (OSError, ValueError, KeyError, TypeError, CecError):
        return None
    return folder if whole else None


def keep_conversion(file: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write what was read of a GGUF file for `find_conversion`, in place of earlier contents."""
    folder = _find_folder(file)
    staged = folder.with_name(f".{os.getpid()}-{folder.name}")
    model.hf_quantizer = None  # else transformers writes nothing
    vars(model.config).pop("quantization_config", None)
    try:
        with naming_errors(folder):
            model.save_pretrained(staged)
            tokenizer.save_pretrained(staged)
            record = {"file": str(file.resolve()), "sha256": hash_model(staged)}
            (staged / _RECORD).write_text(json.dumps(record), "utf-8")
            _remove_stale(folder, record["file"])
            durable.publish(staged, folder)
    except CecError as error:
        shutil.rmtree(staged, ignore_errors=True)
        say(f"{file} has to be read again next time, because {folder} cannot be written: {error}")


def _find_folder(file: Path) -> Path:
    digest = durable.sha256_of(file).sha256
    return find_user_folder("XDG_CACHE_HOME") / "cec-zero" / "gguf" / f"{digest[:16]}-chinese"


def _read_record(folder: Path) -> dict[str, Any]:
    """Return what a folder holds; raise ValueError or TypeError where that is no record."""
    record: Any = parse((folder / _RECORD).read_bytes())
    return dict(record)


def _remove_stale(folder: Path, file: str) -> None:
    """Remove a damaged folder, those of earlier contents of a file, and what was left half made."""
    for path in folder.parent.iterdir():
        if path.name.startswith("."):  # half made by the process in its name
            process = path.name[1:].partition("-")[0]
            stale = process.isdecimal() and has_ended(int(process))
        else:
            try:
                stale = path == folder or _read_record(path)["file"] == file
            except (OSError, ValueError, KeyError, TypeError):
                stale = True
        if stale:
            shutil.rmtree(path, ignore_errors=True)
