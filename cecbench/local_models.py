"""What local models share: torch and transformers, imported late; a checkpoint's identity; its
device, number format and threads.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import ModuleType

from cecdata.common import hub
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.common.hub import sha256_of_model

# Below this, threads cost more by waiting than they save (docs/reference/systems.md).
SMALL = 30_000_000  # parameters
_TURN = Lock()


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


def _some(names: list[str], count: int = 5) -> str:
    return ", ".join(names[:count]) + (" …" if len(names) > count else "")


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


def checkpoint_identity(checkpoint: str, revision: str | None) -> dict[str, object]:
    """Return the name, and the digest of a folder's model files or the revision of a hub model."""
    folder = Path(checkpoint)
    if not folder.is_dir():
        return {"checkpoint": checkpoint, "revision": revision or "not stated"}
    return {"checkpoint": folder.name, "sha256": sha256_of_model(folder)}


def run_identity(torch: ModuleType, transformers: ModuleType, device: str) -> dict[str, object]:
    """Return versions and device, because others may give other answers."""
    versions = {module.__name__: str(module.__version__) for module in (torch, transformers)}
    return {"versions": versions, "device": str(torch.device(device).type)}


def pick_device(torch: ModuleType, wanted: str) -> str:
    """Return the torch device of a name; `auto` is the first GPU, or the processor without one."""
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_available() else "cpu"


def pick_dtype(torch: ModuleType, wanted: str) -> object:
    """Return the torch dtype of a name; `auto` means: as the checkpoint stores it."""
    if wanted == "auto":
        return "auto"
    return getattr(torch, wanted)


def batches_by_length(sizes: list[int], batch: int) -> list[list[int]]:
    """Return indices in batches of similar size, the largest first:
    if memory runs out, it does so at once.

    >>> batches_by_length([3, 9, 1, 8], 2)
    [[1, 3], [0, 2]]
    """
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


def thread_count(model: object, wanted: int) -> int | None:
    """Return `wanted`, or if it is 0: one for a small model, None (torch's default) for another."""
    if wanted:
        return wanted
    size = sum(parameter.numel() for parameter in model.parameters())  # type: ignore[attr-defined]
    return 1 if size < SMALL else None


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let torch compute with `count` threads inside; None leaves their number as it is.

    One caller at a time is inside: the number belongs to the process, and so do a tokenizer's
    settings.
    """
    import torch

    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(count or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)
