"""Checkpoints of transformers: torch and transformers, imported late, and a safe way to load."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from cecdata.common import hub
from cecdata.common.errors import InputError, MissingPackageError, how_to_install


def torch_and_transformers(extra: str = "bench") -> tuple[ModuleType, ModuleType]:
    """Import and return the two modules.

    Raises MissingPackageError, which names the extra that brings them, and UsageError if the hub's
    address is not valid: transformers reads it when it is imported.
    """
    hub.prepare_hub()
    try:
        torch, transformers = (importlib.import_module(n) for n in ("torch", "transformers"))
    except ImportError as error:
        raise MissingPackageError(
            f"{error.name or error} is missing, and local models need it: {how_to_install(extra)}"
        ) from None
    return torch, transformers


def load_pretrained(loader: object, checkpoint: str, **settings: object) -> object:
    """Return `loader.from_pretrained(…)`; raise InputError naming the checkpoint.

    Weights come from safetensors alone, and code that a checkpoint brings is not run: both would
    let whoever made it do anything here.
    """
    hub.refuse_missing_folder(checkpoint)
    if not sys.stderr.isatty():  # a bar of moving lines would fill a log
        _, transformers = torch_and_transformers()
        transformers.utils.logging.disable_progress_bar()
    settings = {"trust_remote_code": False, **settings}
    kind = getattr(loader, "__name__", "")
    if kind.startswith("AutoModel"):
        settings = {"use_safetensors": True, **settings}
    with_info = kind.startswith("AutoModelFor")
    if with_info:
        settings = {"output_loading_info": True, **settings}
    try:
        with hub.quiet_hub():
            loaded = loader.from_pretrained(checkpoint, **settings)  # type: ignore[attr-defined]
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged checkpoint raises whatever it likes
        raise InputError(
            f"{checkpoint} cannot be loaded: {hub.first_line(error)}. Name a folder with "
            "config.json, tokenizer and weights in safetensors (pickled ones are not read), or a "
            "hub name (HF_ENDPOINT and HF_HUB_OFFLINE are respected)"
        ) from None
    if not with_info:
        return loaded
    model, info = loaded
    if missing := sorted(info["missing_keys"]):  # transformers draws them at random, and goes on
        raise InputError(
            f"{checkpoint} lacks {len(missing)} of the model's tensors ({_some(missing)}): copy it "
            "again, whole, or name a checkpoint that was trained for this"
        )
    return model


def check_tokens(checkpoint: str, tokenizer: object, model: object) -> None:
    """Raise InputError if the tokenizer's end or padding token has no row in the model."""
    rows = model.get_input_embeddings().weight.shape[0]  # type: ignore[attr-defined]
    for name in ("eos_token_id", "pad_token_id"):
        number = getattr(tokenizer, name)
        if number is not None and number >= rows:
            raise InputError(
                f"{checkpoint}: the tokenizer's {name} is {number}, the model knows tokens below "
                f"{rows}: is tokenizer_config.json the one that belongs to the model?"
            )


def _some(names: list[str], count: int = 5) -> str:
    return ", ".join(names[:count]) + (" …" if len(names) > count else "")
