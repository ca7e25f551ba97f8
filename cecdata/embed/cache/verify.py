"""The verification of a cache: every bit of it, and the agreement of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cecdata.common.durable import sha256_of
from cecdata.common.durable.damage import damage_of
from cecdata.common.errors import CecError
from cecdata.embed.cache.faiss_file import installed as faiss_installed
from cecdata.embed.cache.layout import FAISS, SIDECAR, Sidecar, read_sidecar
from cecdata.embed.cache.segments import FOLDER, Opened, files_of, open_segment, vector_sums
from cecdata.shards.inventory import Problem
from cecdata.shards.verify import Report

_BLOCK = 8192


def is_cache(root: Path) -> bool:
    """Return whether a folder is a cache, even without its sidecar."""
    return (root / SIDECAR).is_file() or (root / FOLDER).is_dir()


def verify_cache(root: Path) -> Report:
    """Check every bit of a cache; damage is a problem in the report and raises no error."""
    try:
        sidecar = read_sidecar(root)
    except CecError as error:
        return Report("full", (Problem(SIDECAR, str(error)),), 0, 0)
    problems = tuple(_problems(root, sidecar))
    files = 1 + 2 * len(sidecar.segments) + (sidecar.faiss is not None)
    return Report("full", problems, files, sidecar.rows)


def _problems(root: Path, sidecar: Sidecar) -> Iterator[Problem]:
    opened: list[Opened] = []
    for segment in sidecar.segments:
        try:
            opened.append(open_segment(root, segment, sidecar.dimension))
        except CecError as error:
            yield Problem(f"{FOLDER}/{segment.name}", str(error))
    for each in opened:
        yield from _rows(each)
    keys = np.concatenate([segment.keys for segment in opened]) if opened else np.empty(0)
    if len(np.unique(keys)) != len(keys):
        yield Problem(FOLDER, "an id occurs more than once")
    if len(opened) == len(sidecar.segments) and len(keys) != sidecar.rows:
        yield Problem(SIDECAR, f"has {sidecar.rows:,} rows, the segments have {len(keys):,}")
    named = {path for s in sidecar.segments for path in files_of(root, s.name)}
    for path in sorted((root / FOLDER).glob("*")):
        if path not in named:
            yield Problem(f"{FOLDER}/{path.name}", "a file that the sidecar does not name")
    yield from _faiss(root, sidecar)
    for name, what in damage_of(root):
        yield Problem(
            name, f"{what}: `cecdata embed` refuses this cache, although its vectors are sound"
        )


def _rows(segment: Opened) -> Iterator[Problem]:
    name = f"{FOLDER}/{segment.path.name}"
    if (segment.keys[1:] <= segment.keys[:-1]).any():
        yield Problem(name, "its ids are not in ascending order")
    damaged = empty = 0
    for start in range(0, len(segment.keys), _BLOCK):
        part = slice(start, start + _BLOCK)
        vectors = segment.vectors[part].copy()
        segment.release()
        sums = vector_sums(vectors, segment.keys[part])
        damaged += int((sums != segment.sums[part]).sum())
        wide = vectors.astype(np.float32)
        sizes = np.einsum("nd,nd->n", wide, wide)
        empty += int((~(np.isfinite(sizes) & (sizes > 0))).sum())
    if damaged:
        yield Problem(name, f"{damaged:,} vectors are damaged")
    if empty:
        yield Problem(name, f"{empty:,} vectors are zero or not finite")


def _faiss(root: Path, sidecar: Sidecar) -> Iterator[Problem]:
    path = root / FAISS
    if sidecar.faiss is None:
        if path.exists():
            yield Problem(FAISS, "rows were added since: run the same `cecdata embed` again")
        elif sidecar.rows and faiss_installed():
            yield Problem(FAISS, "not written: run the same `cecdata embed` again")
        return
    try:
        record = sha256_of(path) if path.is_file() else None
        if record is None:
            yield Problem(FAISS, "missing: run the same `cecdata embed` again")
        elif (record.sha256, record.bytes) != (sidecar.faiss.sha256, sidecar.faiss.bytes):
            yield Problem(FAISS, "damaged: its SHA-256 is not the one in the sidecar")
    except CecError as error:
        yield Problem(FAISS, str(error))
    if sidecar.faiss.rows != sidecar.rows:
        yield Problem(FAISS, f"{sidecar.faiss.rows:,} rows, the cache has {sidecar.rows:,}")
