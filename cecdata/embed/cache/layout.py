"""The sidecar `cache.json`: what the cache holds, by which encoder, with a sum over itself."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from cecdata.common.codec import decode, encode
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.strict_json import parse

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
    """Everything that a reader relies on."""

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
    """Its one and only byte form: the sum over the body first, then the body."""
    body = json.dumps(encode(sidecar), ensure_ascii=False, indent=1)
    return f'{{"sha256": "{_sum(body)}", "cache": {body}}}\n'.encode()


def read_sidecar(folder: Path) -> Sidecar:
    """InputError where there is no cache; VerificationError where a bit of the sidecar is off."""
    path = folder / SIDECAR
    if not path.is_file():
        raise InputError(f"{folder}: no embedding cache here ({SIDECAR} is missing): cecdata embed")
    with naming(path):
        data = path.read_bytes()
    try:
        found = decode(Sidecar, dict(parse(data))["cache"], str(path))  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if dump_sidecar(found) != data:
        raise _damaged(path, "its checksum does not match")
    if found.version != VERSION or found.dtype != DTYPE:
        raise InputError(
            f"{path}: version {found.version} with {found.dtype} vectors; this program reads "
            f"version {VERSION} with {DTYPE}: embed the sentences again into another folder"
        )
    if odd := [s.name for s in found.segments if not _NAME.fullmatch(s.name)]:
        raise _damaged(path, f"{odd[0]!r} is no segment's name")
    if found.dimension < 1 or any(segment.rows < 0 for segment in found.segments):
        raise _damaged(path, "a size below nothing")
    return found


def _damaged(path: Path, what: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({what}). Nothing of this cache is used; remove the folder and run "
        "`cecdata embed` again"
    )


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
