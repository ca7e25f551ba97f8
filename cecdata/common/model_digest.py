"""The digest of a model's folder, over all files that decide its answers and vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from cecdata.common import durable


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
