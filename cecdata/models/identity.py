"""What tells models apart: the digest of their files, the versions and the device of a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from cecdata.common import durable


def checkpoint_identity(checkpoint: str, model: object = None) -> dict[str, str]:
    """Return the name, and the digest of a model's files or the revision of a model on a hub.

    model: what was loaded, which knows that revision.
    """
    path = Path(checkpoint)
    if path.is_dir():
        return {"checkpoint": path.name, "sha256": sha256_of_model(path)}
    if path.is_file():
        return {"checkpoint": path.name, "sha256": durable.sha256_of(path).sha256}
    revision = getattr(getattr(model, "config", None), "_commit_hash", None)
    return {"checkpoint": checkpoint, "revision": str(revision or "not stated")}


def run_identity(torch: ModuleType, transformers: ModuleType, device: str) -> dict[str, object]:
    """Return versions and device, because others may give other answers."""
    versions = {module.__name__: str(module.__version__) for module in (torch, transformers)}
    return {"versions": versions, "device": str(torch.device(device).type)}


def sha256_of_model(folder: Path) -> str:
    """Return the SHA-256 (hex) over the names and bytes of a model's files.

    These are the weights, tokenizer, pooling, chat template and settings.
    """
    total = hashlib.sha256()
    for name in sorted(_files_of(folder)):
        line = f"{durable.sha256_of(folder / name).sha256} {name}\0"
        total.update(line.encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _files_of(folder: Path) -> Iterator[str]:
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
