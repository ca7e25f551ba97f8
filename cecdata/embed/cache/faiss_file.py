"""The FAISS file: IDMap2 over a scalar quantiser of fp16, inner product.

It holds a second copy of the vectors, so that search and other programs need only this file. FAISS
itself does not notice a flipped bit: `open_index` compares the SHA-256 before it maps the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, MissingPackageError, VerificationError, how_to_install
from cecdata.embed.cache.reader import Cache
from cecdata.embed.cache.segments import Halves, Keys, Rows

Floats = npt.NDArray[np.float32]
_BLOCK = 8192  # rows that are in memory while the file is written
_PROBES = 64  # rows that are read back through FAISS
_PRODUCT = 0  # faiss.METRIC_INNER_PRODUCT
# (vectors [N, d] float32, k) → products and rows of the k nearest: two arrays [queries, k]
BlockSearch = Callable[[Floats, int], tuple[Floats, Rows]]


def installed() -> bool:
    """Return whether FAISS is installed, for CPU or GPU."""
    import importlib.util

    return importlib.util.find_spec("faiss") is not None


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes that begin a FAISS file, and the offsets in them of the number of rows.

    They are followed by the size of the vectors in bytes (64 bits), the vectors, the number of ids
    (64 bits), and the ids.
    """

    head: bytes
    counts: tuple[int, ...]

    def filled(self, rows: int) -> bytes:
        """Return the head of a file with `rows` rows."""
        data = bytearray(self.head)
        for at in self.counts:
            data[at : at + 8] = _u64(rows)
        return bytes(data)


def write_index(path: Path, cache: Cache) -> None:
    """Write the index of all rows, block by block: memory does not grow with their number.

    FAISS can write only an index that it holds in memory. So it writes two small ones, which show
    what precedes and follows the vectors in a file; this function writes the large one in that
    layout. If the layout is not as expected, FAISS writes the index itself, which takes 2 d + 16
    bytes of memory per row.
    """
    frame = learn_frame(cache.sidecar.dimension)
    if frame is None:
        _faiss().write_index(_small(cache.batches(_BLOCK), cache.sidecar.dimension), str(path))
        return
    with path.open("wb") as file:
        _write(file, frame, cache)


def _write(file: BinaryIO, frame: Frame, cache: Cache) -> None:
    rows = len(cache)
    file.write(frame.filled(rows) + _u64(rows * cache.sidecar.dimension * 2))
    file.writelines(np.ascontiguousarray(vectors).data for _, vectors in cache.batches(_BLOCK))
    file.write(_u64(rows))
    file.writelines(
        segment.keys.data for segment in cache.segments
    )  # FAISS's ids are signed; the same 64 bits


def learn_frame(dimension: int) -> Frame | None:
    """Return the common frame of two indexes by FAISS, of one and two rows; None if it fails."""
    one, two = _example(1, dimension), _example(2, dimension)
    if one is None or two is None or len(one) != len(two):
        return None
    counts = []
    at = 0
    while at < len(one):
        if one[at] == two[at]:
            at += 1
            continue
        if one[at : at + 8] != _u64(1) or two[at : at + 8] != _u64(2):
            return None
        counts.append(at)
        at += 8
    return Frame(one, tuple(counts)) if counts else None


def _example(rows: int, dimension: int) -> bytes | None:
    """Return the bytes of a small index before the vectors; None if the rest is unexpected."""
    rng = np.random.default_rng(rows)
    keys = rng.integers(0, 2**64, rows, np.uint64)
    vectors = rng.standard_normal((rows, dimension)).astype(np.float16)
    data = bytes(_faiss().serialize_index(_small(iter([(keys, vectors)]), dimension)))
    tail = _u64(vectors.nbytes) + vectors.tobytes() + _u64(rows) + keys.tobytes()
    return data[: -len(tail)] if data.endswith(tail) else None


def _small(batches: Iterator[tuple[Keys, Halves]], dimension: int) -> Any:
    faiss = _faiss()
    flat = faiss.IndexScalarQuantizer(
        dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    flat.is_trained = True
    index = faiss.IndexIDMap2(flat)
    for keys, vectors in batches:
        index.add_with_ids(np.ascontiguousarray(vectors, np.float32), keys.astype(np.int64))
    return index


def check_index(path: Path, cache: Cache) -> None:
    """Raise VerificationError unless FAISS opens the file and returns its rows and vectors.

    The vectors of some rows of every segment are compared, including the first and the last.
    """
    index = _map(path)
    if int(index.ntotal) != len(cache):
        raise VerificationError(
            f"{path}: {len(cache):,} rows were written, FAISS counts {int(index.ntotal):,}"
        )
    start = 0
    for segment in cache.segments:
        rows = np.unique(np.linspace(0, len(segment.keys) - 1, _PROBES).astype(np.int64))
        for row, wanted in zip(rows.tolist(), segment.take(rows), strict=True):
            inside = index.index.reconstruct(start + row)
            known = int(index.id_map.at(start + row)) % 2**64
            if known != int(segment.keys[row]) or not np.array_equal(inside, wanted):
                raise VerificationError(f"{path}: row {start + row} is not what was written")
        start += len(segment.keys)


def open_index(cache: Cache) -> Any:
    """Check the SHA-256 of the index (a second for each 1.5 GB) and map it."""
    path, wanted = cache.faiss_path, cache.sidecar.faiss
    assert wanted is not None  # else faiss_path has raised
    if not path.is_file():
        raise VerificationError(f"{path}: missing; run the same `cecdata embed` again")
    file = sha256_of(path)
    if file.sha256 != wanted.sha256:
        raise VerificationError(
            f"{path}: damaged (its SHA-256 is not the one in the sidecar). Remove it: the next "
            "`cecdata embed` writes it anew from the segments"
        )
    return _map(path)


def search(index: Any, queries: Floats, count: int) -> tuple[Floats, Keys]:
    """Return cosines and ids of the nearest, [queries, count]; padded with ids 2**64 - 1."""
    if queries.shape[1] != index.d:
        raise InputError(f"queries of {queries.shape[1]} dimensions, the index has {index.d}")
    cosine, ids = index.search(np.ascontiguousarray(queries, np.float32), count)
    return cosine, ids.astype(np.uint64)


def gpus() -> int:
    """Return the number of GPUs that FAISS sees; 0 for its CPU build."""
    return int(_faiss().get_num_gpus()) if installed() else 0


def block_search(queries: Floats, *, on_gpu: bool) -> BlockSearch:
    """Return an exact search by FAISS over blocks of vectors, without an index."""
    faiss = _faiss()
    if not on_gpu:
        return lambda block, count: _knn(faiss.knn(queries, block, count, _PRODUCT))
    resources = faiss.StandardGpuResources()
    return lambda block, count: _knn(
        faiss.knn_gpu(resources, queries, block, count, metric=_PRODUCT)
    )


def _knn(result: tuple[Any, Any]) -> tuple[Floats, Rows]:
    return np.asarray(result[0], np.float32), np.asarray(result[1], np.int64)


def _map(path: Path) -> Any:
    faiss = _faiss()
    # IO_FLAG_MMAP would load an index of this kind whole; FAISS before 1.11 has no other flag
    return faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", 0))


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingPackageError(
            f"the FAISS file needs faiss: {how_to_install('embed')} (or [gpu], never both)"
        ) from error
    return faiss


def _u64(value: int) -> bytes:
    return struct.pack("<Q", value)
