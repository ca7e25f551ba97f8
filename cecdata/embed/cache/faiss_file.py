"""The FAISS file: IDMap2 over a scalar quantiser of fp16, inner product. Alone imports `faiss`.

It holds the vectors once more, so that search and other programs need nothing of ours. FAISS
itself notices no flipped bit: `open_index` compares the SHA-256 before it maps the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cecdata.durable import sha256_of
from cecdata.embed.cache.reader import Cache
from cecdata.embed.cache.segments import Halves, Keys
from cecdata.errors import InputError, MissingPackageError, VerificationError


def installed() -> bool:
    """Is FAISS there, in its CPU or GPU build?"""
    import importlib.util

    return importlib.util.find_spec("faiss") is not None


def write_index(path: Path, batches: Iterable[tuple[Keys, Halves]], dimension: int) -> None:
    """Build in memory (2 d + 16 bytes a row) and write; fp16 values are stored as they are."""
    faiss = _faiss()
    flat = faiss.IndexScalarQuantizer(
        dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    flat.is_trained = True
    index = faiss.IndexIDMap2(flat)
    for keys, vectors in batches:
        # FAISS's ids are signed; the same 64 bits
        index.add_with_ids(np.ascontiguousarray(vectors, np.float32), keys.astype(np.int64))
    faiss.write_index(index, str(path))


def check_rows(path: Path, rows: int) -> None:
    """VerificationError unless the file opens and holds so many rows."""
    found = int(_map(path).ntotal)
    if found != rows:
        raise VerificationError(f"{path}: {rows:,} rows were written, {found:,} were read back")


def open_index(cache: Cache) -> Any:
    """The index, mapped: checked by its SHA-256 first (a second for each 1.5 GB)."""
    path, wanted = cache.faiss_path, cache.sidecar.faiss
    assert wanted is not None  # else faiss_path has raised
    if not path.is_file():
        raise VerificationError(f"{path}: missing; run the same `cecdata embed` again")
    found = sha256_of(path)
    if found.sha256 != wanted.sha256:
        raise VerificationError(
            f"{path}: damaged (its SHA-256 is not the one in the sidecar). Remove it: the next "
            "`cecdata embed` writes it anew from the segments"
        )
    return _map(path)


def search(
    index: Any, queries: npt.NDArray[np.float32], count: int
) -> tuple[npt.NDArray[np.float32], Keys]:
    """Cosine and id of the nearest: two arrays [queries, count]; ids 2**64 - 1 fill up."""
    if queries.shape[1] != index.d:
        raise InputError(f"queries of {queries.shape[1]} dimensions, the index has {index.d}")
    cosine, found = index.search(np.ascontiguousarray(queries, np.float32), count)
    return cosine, found.astype(np.uint64)


def _map(path: Path) -> Any:
    faiss = _faiss()
    # IO_FLAG_MMAP alone would load everything of this kind of index
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingPackageError(
            "the FAISS file needs faiss: pip install 'cec-zero[embed]' (or [gpu], never both)"
        ) from error
    return faiss
