"""Which sentences are held out, by id alone; and lists of SHA-256 that pin a split for others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.common import durable
from cecdata.common.errors import InputError, UsageError
from cecdata.common.kernels.mix import splitmix64
from cecdata.corpus.dedup import Mask
from cecdata.corpus.xxh3 import Int64s, Uint64s

_PURPOSE = np.uint64(0x53504C4954000001)  # "SPLIT": keeps the draw apart from other uses of the id
_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_validation(ids: Uint64s | Int64s, holdout: float) -> Mask:
    """Whether each sentence is held out; a share `holdout` (fraction) of all ids is.

    A larger holdout only adds sentences. Order, seed and shards play no part.

    >>> is_validation(np.arange(5, dtype=np.uint64), 0.0).any()
    np.False_
    """
    if not 0.0 <= holdout <= 1.0:
        raise UsageError(f"holdout {holdout}: a fraction from 0 to 1 is wanted")
    if holdout == 1.0:
        return np.ones(len(ids), dtype=np.bool_)
    return splitmix64(ids.view(np.uint64) ^ _PURPOSE) < np.uint64(int(holdout * 2**64))


def digest(sentence: str) -> str:
    """The SHA-256 (hex) of a sentence's UTF-8, as the lists hold it."""
    return hashlib.sha256(sentence.encode("utf-8")).hexdigest()


def write_list(path: Path, sentences: Iterable[str]) -> durable.FileRecord:
    """Write the sorted, distinct SHA-256 of sentences, one a line."""
    digests = sorted({digest(sentence) for sentence in sentences})
    return durable.write_text(path, "".join(f"{line}\n" for line in digests))


def read_list(path: Path) -> frozenset[str]:
    """Read a list that `write_list` or `sha256sum` wrote (what follows the hash is ignored)."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    found: set[str] = set()
    for number, line in enumerate(lines, 1):
        first = line.split(maxsplit=1)[0].lower() if line.strip() else ""
        if first and not _DIGEST.fullmatch(first):
            raise InputError(f"{path}, line {number}: not a SHA-256 (64 hexadecimal digits)")
        found.add(first)
    return frozenset(found - {""})


def in_list(text: pa.Array, listed: frozenset[str]) -> Mask:
    """Whether each sentence's SHA-256 is in the list."""
    return np.fromiter((digest(t) in listed for t in text.to_pylist()), np.bool_, len(text))
