"""Embeddings on disk, for tests: what a build leaves beside its pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cecdata.common import durable
from cecdata.embed.store import STORE, Range, contents_bytes, range_bytes


def write_store(folder: Path, model, *parts) -> Path:
    """Write a store of these (ids, vectors), a file each, by what has an encoder's facts."""
    ranges = []
    for number, (keys, vectors) in enumerate(parts):
        path, ids = folder / f"{number:05d}.faiss", np.asarray(keys).view(np.int64)
        made = durable.write_bytes(path, range_bytes(keys, vectors).tobytes())
        first, last = int(ids.min()), int(ids.max())
        ranges.append(Range(path.name, first, last, len(ids), made.bytes, made.sha256))
    durable.write_bytes(folder / STORE, contents_bytes(model, ranges))
    return folder
