"""One segment: sorted 64-bit ids, a 32-bit sum for each vector, and the fp16 vectors, mapped.

A vector takes 2 d + 12 bytes. Its sum binds it to its id. One SHA-256, checked on opening, covers
the ids and sums; a vector's own sum is checked before the vector is returned.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.durable.files import naming
from cecdata.common.errors import VerificationError
from cecdata.corpus.xxh3 import ids
from cecdata.embed.cache.layout import Segment

FOLDER = "segments"
Keys = npt.NDArray[np.uint64]
Sums = npt.NDArray[np.uint32]
Halves = npt.NDArray[np.float16]
Rows = npt.NDArray[np.int64]
_AT_ONCE = 1 << 28  # bytes hashed in one go; Arrow's offsets are 32 bits wide
_CACHED = 1 << 18  # bytes copied before their sums are computed, while in the processor's cache


@dataclass(frozen=True, slots=True)
class Opened:
    """A segment opened for reading."""

    path: Path
    keys: Keys
    sums: Sums
    vectors: Halves  # [rows, dimension], mapped
    mapped: mmap.mmap | None  # None where there are no rows

    def find(self, keys: npt.NDArray[np.int64] | Keys) -> Rows:
        """Return the row of each key, -1 for a missing one."""
        keys = keys.view(np.uint64)
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        return np.where(self.keys[at] == keys, at, -1) if len(self.keys) else at - 1

    def take(self, rows: Rows) -> Halves:
        """Return vectors by row, each checked; raise VerificationError if one is damaged."""
        vectors = np.empty((len(rows), self.vectors.shape[1]), np.float16)
        wrong = np.empty(len(rows), np.bool_)
        step = max(1, _CACHED // max(1, 2 * vectors.shape[1]))
        for start in range(0, len(rows), step):
            at = slice(start, start + step)
            # all rows are in range, so clipping changes none; it saves a copy
            np.take(self.vectors, rows[at], axis=0, out=vectors[at], mode="clip")
            wrong[at] = vector_sums(vectors[at], self.keys[rows[at]]) != self.sums[rows[at]]
        bad = np.flatnonzero(wrong)
        if len(bad):
            raise VerificationError(
                f"{self.path}: the vector of id {int(self.keys.view(np.int64)[rows[bad[0]]])} (row "
                f"{int(rows[bad[0]])}) is damaged, and so are {len(bad) - 1} more of those looked "
                "up: `cecdata verify` counts all; remove the cache and embed again"
            )
        return vectors

    def blocks(self, rows: int) -> Iterator[tuple[Keys, Halves]]:
        """Yield all vectors in order, `rows` at a time, each checked."""
        for start in range(0, len(self.keys), rows):
            at = np.arange(start, min(start + rows, len(self.keys)))
            yield self.keys[at], self.take(at)
            self.release()

    def release(self) -> None:
        """Release the pages that were read; the system keeps them while memory is free."""
        if self.mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapped.madvise(mmap.MADV_DONTNEED)


def vector_sums(vectors: Halves, keys: Keys) -> Sums:
    """Return 32 bits of XXH3 of each row's bytes, mixed with its key: [N] uint32."""
    rows, width = len(vectors), vectors.shape[1] * 2
    hashes = np.empty(rows, np.uint64)
    step = max(1, _AT_ONCE // max(1, width))
    for start in range(0, rows, step):
        part = np.ascontiguousarray(vectors[start : start + step])
        offsets = np.arange(len(part) + 1, dtype=np.int32) * np.int32(width)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part)]
        hashes[start : start + step] = ids(pa.Array.from_buffers(pa.binary(), len(part), buffers))
    mixed = hashes ^ (keys * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray((mixed ^ (mixed >> np.uint64(32))).astype(np.uint32))


def open_segment(root: Path, segment: Segment, dimension: int) -> Opened:
    """Map the vectors and read the ids; raise VerificationError if the files are damaged."""
    keys_path, path = files_of(root, segment.name)
    with naming(keys_path):
        data = keys_path.read_bytes()
    if hashlib.sha256(data).hexdigest() != segment.keys_sha256 or len(data) != 12 * segment.rows:
        raise VerificationError(f"{keys_path}: damaged or cut short; {_AGAIN}")
    with naming(path):
        size = path.stat().st_size
    if size != segment.rows * dimension * 2:
        raise VerificationError(
            f"{path} has {size:,} bytes instead of {segment.rows * dimension * 2:,}; {_AGAIN}"
        )
    keys = np.frombuffer(data, np.uint64, segment.rows)
    sums = np.frombuffer(data, np.uint32, segment.rows, 8 * segment.rows)
    if not segment.rows:
        return Opened(path, keys, sums, np.empty((0, dimension), np.float16), None)
    with naming(path), path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    vectors = np.frombuffer(mapped, np.float16, segment.rows * dimension)
    return Opened(path, keys, sums, vectors.reshape(segment.rows, dimension), mapped)


def files_of(root: Path, name: str) -> tuple[Path, Path]:
    """Return the two paths of a segment."""
    return root / FOLDER / f"{name}.keys", root / FOLDER / f"{name}.vectors"


_AGAIN = "nothing of this cache is used: remove it and run `cecdata embed` again"
