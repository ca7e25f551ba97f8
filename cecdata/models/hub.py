"""Models by name: on a hub, without the token and the login in messages, or in a folder; and what
tells models apart.

HF_ENDPOINT may hold a user and a password, and the hub's libraries write it into messages.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import os
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from cecdata.common import durable, errors

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")
_ENDPOINT = "HF_ENDPOINT"


def refuse_missing_folder(name: str) -> None:
    """Raise InputError where `name` is a path, and nothing exists there.

    Otherwise a hub would be asked for it, repeatedly if there is no network, and a stranger may own
    that name. A path does not have the form OWNER/NAME, or its first folder exists.
    """
    path = Path(name)
    if path.is_dir() or path.is_file():
        return
    parts = name.split("/")
    is_hub_name = len(parts) == 2 and all(parts) and parts[0] not in {".", "..", "~"}
    if not is_hub_name or path.parent.is_dir():
        raise errors.InputError(
            f"{name}: no such folder. Name a folder with a model, or a model on the Hugging Face "
            "hub (OWNER/NAME, such as google-bert/bert-base-chinese)"
        )


def shorten(error: Exception) -> str:
    """Return the first line of a library's message, redacted, without its final full stop."""
    lines = redact_hub(str(error)).strip().splitlines()
    return (lines[0].rstrip(" .")[:200] if lines else "") or type(error).__name__


def redact_hub(text: str) -> str:
    """Return a library's message about the model hub, without the token and the login."""
    for name in _TOKENS:
        text = errors.hide_key(text, os.environ.get(name, "").strip() or None)
    login, at, _ = os.environ.get(_ENDPOINT, "").partition("://")[2].rpartition("@")
    if at:  # removed as it was written: a password with a slash would not be parsed as one
        text = text.replace(login + at, "")
    return errors.without_userinfo(text)


def prepare_hub() -> None:
    """Turn off telemetry and check HF_ENDPOINT; call this before the first import of a hub library.

    Set HF_HUB_DISABLE_TELEMETRY=0 to keep what these libraries and TRL report to the hub. Raises
    UsageError where HF_ENDPOINT is no address: the hub's library would print all of it.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    address = os.environ.get(_ENDPOINT)
    try:
        parts = urllib.parse.urlsplit(address or "https://hub")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise errors.UsageError(
            f"the environment variable {_ENDPOINT} must hold an address such as https://HOST. "
            "Write / and @ in a password as %2F and %40, or unset the variable"
        )


@contextmanager
def quiet_hub() -> Iterator[None]:
    """Redact every log record that any library makes inside the `with` block."""
    make_plain_record = logging.getLogRecordFactory()

    def make_redacted_record(*args: object, **named: object) -> logging.LogRecord:
        record = make_plain_record(*args, **named)
        record.msg, record.args = redact_hub(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redact_hub(logging.Formatter().formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(make_redacted_record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(make_plain_record)


def import_torch(extra: str = "bench", *more: str) -> tuple[ModuleType, ModuleType]:
    """Import and return torch and transformers.

    more: packages that are needed, too. Raises MissingPackageError, which names the extra that
    brings them, before anything is imported, and UsageError if the hub's address is not valid:
    transformers reads it when it is imported.
    """
    prepare_hub()
    for name in ("torch", "transformers", *more):
        if importlib.util.find_spec(name) is None:
            raise errors.MissingPackageError(
                f"local models need {name}, which is missing: {errors.how_to_install(extra)}"
            )
    torch, transformers = (importlib.import_module(n) for n in ("torch", "transformers"))
    return torch, transformers


def load_pretrained(loader: Any, checkpoint: str, **settings: object) -> Any:
    """Return `loader.from_pretrained(…)`; raise InputError naming the checkpoint.

    Weights come from safetensors alone, and code that a checkpoint brings is not run: both would
    let whoever made it do anything here.
    """
    refuse_missing_folder(checkpoint)
    # a bar would fill a log; on a terminal only a download takes long enough for one
    if Path(checkpoint).is_dir() or not sys.stderr.isatty():
        _, transformers = import_torch()
        transformers.utils.logging.disable_progress_bar()
    kind, defaults = getattr(loader, "__name__", ""), {"trust_remote_code": False}
    if kind.startswith("AutoModel"):
        defaults["use_safetensors"] = True
    if with_info := kind.startswith("AutoModelFor"):
        defaults["output_loading_info"] = True
    settings = {**defaults, **settings}
    try:
        with quiet_hub():
            loaded = loader.from_pretrained(checkpoint, **settings)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged checkpoint raises whatever it likes
        if file := settings.get("gguf_file"):
            raise errors.InputError(
                f"{Path(checkpoint) / str(file)} cannot be loaded: {shorten(error)}. Copy "
                "or download it again, or name a GGUF file whose architecture transformers reads"
            ) from None
        raise errors.InputError(
            f"{checkpoint} cannot be loaded: {shorten(error)}. Name a folder with config.json, "
            "a tokenizer and weights in safetensors (pickled weights are not read), or a model on "
            "a hub (HF_ENDPOINT and HF_HUB_OFFLINE apply)"
        ) from None
    if not with_info:
        return loaded
    model, info = loaded
    _refuse_missing(checkpoint, sorted(info["missing_keys"]))
    return model


def _refuse_missing(checkpoint: str, tensors: list[str]) -> None:
    """Raise InputError for missing tensors: transformers draws them at random, and goes on."""
    if tensors:
        raise errors.InputError(
            f"{checkpoint} lacks {len(tensors)} of the model's tensors (such as {tensors[0]}): "
            "copy the complete checkpoint again, or name one that was trained for this task"
        )


def identify_checkpoint(checkpoint: str, model: object = None) -> dict[str, str]:
    """Return the name, and the digest of a model's files or the revision of a model on a hub.

    model: what was loaded, which knows that revision.
    """
    path = Path(checkpoint)
    if path.is_dir():
        return {"checkpoint": path.name, "sha256": hash_model(path)}
    if path.is_file():
        return {"checkpoint": path.name, "sha256": durable.sha256_of(path).sha256}
    revision = getattr(getattr(model, "config", None), "_commit_hash", None)
    return {"checkpoint": checkpoint, "revision": str(revision or "not stated")}


def run_identity(torch: ModuleType, transformers: ModuleType, device: str) -> dict[str, object]:
    """Return versions and device, because others may give other answers."""
    versions = {module.__name__: str(module.__version__) for module in (torch, transformers)}
    return {"versions": versions, "device": str(torch.device(device).type)}


def hash_model(folder: Path) -> str:
    """Return the SHA-256 (hex) over the names and bytes of a model's files.

    These are the weights, tokenizer, pooling, chat template and settings.
    """
    total = hashlib.sha256()
    for name in sorted(_list_weight_files(folder)):
        line = f"{durable.sha256_of(folder / name).sha256} {name}\0"
        total.update(line.encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _list_weight_files(folder: Path) -> Iterator[str]:
    """Yield the relative names of a model's files.

    Which of them a library reads depends on its version, so all count, except the card, hidden
    files, and output folders of this product inside the model's folder.
    """
    for place, below, names in os.walk(folder):
        inner = (name for name in below if not name.startswith("."))
        below[:] = [name for name in inner if not (Path(place) / name / durable.STATE).exists()]
        for name in names:
            path = Path(place) / name
            if not name.startswith(".") and path.stem.lower() != "readme" and path.is_file():
                yield path.relative_to(folder).as_posix()
