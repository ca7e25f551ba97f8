"""The sidecar `cache.json`: the contents of a cache and its encoder, sealed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cecdata.common.codec import decode, encode
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.seal import sealed, unsealed

SIDECAR = "cache.json"
FAISS = "index.faiss"
VERSION = 1
DTYPE = "float16"
_NAME = re.compile("[0-9]{5,9}")  # of a segment: no path leads out of the cache


@dataclass(frozen=True, slots=True)
class Segment:
    """Two files: `name`.keys (sorted ids, then a sum for each vector) and `name`.vectors."""

    name: str
    rows: int
    keys_sha256: str  # of the whole .keys file; each vector has its sum there


@dataclass(frozen=True, slots=True)
class FaissFile:
    """The FAISS index over all rows."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The facts that a reader needs."""

    version: int
    encoder: str
    revision: str
    fingerprint: str
    dimension: int
    dtype: str
    rows: int
    segments: tuple[Segment, ...]
    faiss: FaissFile | None  # None while rows are being added
    next_segment: int = 0


def dump_sidecar(sidecar: Sidecar) -> bytes:
    """Return the bytes of `cache.json`."""
    document = encode(sidecar)
    assert isinstance(document, dict)
    return sealed(document)


def read_sidecar(folder: Path) -> Sidecar:
    """Read the sidecar; raise InputError if there is none, VerificationError if it is damaged."""
    path = folder / SIDECAR
    if not path.is_file():
        raise InputError(
            f"{folder}: no embedding cache here ({SIDECAR} is missing): run `cecdata embed`"
        )
    with naming(path):
        data = path.read_bytes()
    try:
        sidecar = decode(Sidecar, unsealed(data), str(path))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if sidecar.version != VERSION or sidecar.dtype != DTYPE:
        raise InputError(
            f"{path}: version {sidecar.version} with {sidecar.dtype} vectors; this program reads "
            f"version {VERSION} with {DTYPE}: embed the sentences again into another folder"
        )
    if odd := [s.name for s in sidecar.segments if not _NAME.fullmatch(s.name)]:
        raise _damaged(path, f"{odd[0]!r} is no segment's name")
    if sidecar.dimension < 1 or any(segment.rows < 0 for segment in sidecar.segments):
        raise _damaged(path, "a negative number of rows, or a dimension below 1")
    return sidecar


def _damaged(path: Path, what: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({what}). Nothing of this cache is used; remove the folder and run "
        "`cecdata embed` again"
    )
