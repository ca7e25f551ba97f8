"""The folder of a model: what of it decides the answers and the vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from cecdata.common import durable


def sha256_of_model(folder: Path) -> str:
    """SHA-256 (hex) over the names and bytes of all that a model is read from: beside the weights
    its tokenizer, pooling, chat template and settings.
    """
    total = hashlib.sha256()
    for name in sorted(_files_of(folder)):
        line = f"{durable.sha256_of(folder / name).sha256} {name}\0"
        total.update(line.encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _files_of(folder: Path) -> Iterator[str]:
    """Relative names of a model's files. Which of them a library reads differs with its version, so
    all count, but for the card, what is hidden, and output folders of ours that lie in there.
    """
    for place, below, names in os.walk(folder):
        inner = (name for name in below if not name.startswith("."))
        below[:] = [name for name in inner if not (Path(place) / name / durable.STATE).exists()]
        for name in names:
            path = Path(place) / name
            if not name.startswith(".") and path.stem.lower() != "readme" and path.is_file():
                yield path.relative_to(folder).as_posix()
