"""The identity of sentences: their ids, and which of them are held out.

Two sentences with one id would count as one; among 38 M sentences the probability of that is 4e-5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from cecdata.common.kernels import Uint64s, splitmix64

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PURPOSE = np.uint64(0x53504C4954000001)  # "SPLIT": keeps the draw apart from other uses of the id


def hash_texts(text: pa.Array) -> Uint64s:
    """Return the 64-bit XXH3 of each string's UTF-8.

    >>> [hex(value) for value in hash_texts(pa.array(["他的病情已经好转。"]))]
    ['0x2c70002d9620966c']
    """
    raw = text.cast(pa.binary()).to_numpy(zero_copy_only=False)
    return np.fromiter(map(xxh3_64_intdigest, raw), np.uint64, len(text))


def make_id_column(text: pa.Array) -> pa.Array:
    """Return the column `id` of these sentences: the bits of `hash_texts` as int64."""
    return pa.array(hash_texts(text).view(np.int64))


def is_validation(ids: Uint64s | Int64s, holdout: float) -> Mask:
    """Return whether each sentence is held out; `holdout` is the fraction of all ids that are.

    A sentence is held out if a hash of its id, as a fraction of 2^64, is below `holdout`, so that a
    larger one only adds sentences, and order, seed and shards do not matter.
    """
    if holdout == 1.0:
        return np.ones(len(ids), dtype=np.bool_)
    return splitmix64(ids.view(np.uint64) ^ _PURPOSE) < np.uint64(int(holdout * 2**64))
