"""The identity of sentences: their ids, which of them are new, and which are held out.

A set of ids takes 8 bytes a slot, that is 15 to 29 bytes a sentence (1.5 M sentences: 32 MiB; 38 M:
1 GiB), and during a doubling also the old table, half as large. Two different sentences with the
same id would count as one; among 38 M sentences the probability of any such collision is 4e-5.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from cecdata.common.errors import UsageError
from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.mix import splitmix64
from cecdata.common.kernels.utf8 import string_buffers

Uint64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FILL = 0.55  # maximum share of used slots: chains stay short, and doublings are rare
_STEP = 1 << 16  # ids for which space is reserved at a time, although most may be known
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads ids that are not well spread (Fibonacci hashing)
_PURPOSE = np.uint64(0x53504C4954000001)  # "SPLIT": keeps the draw apart from other uses of the id


def ids(text: pa.Array) -> Uint64s:
    """Return the 64-bit XXH3 of each string's UTF-8.

    >>> [hex(value) for value in ids(pa.array(["他的病情已经好转。"]))]
    ['0x2c70002d9620966c']
    """
    raw, offsets = string_buffers(text)
    data, bounds = raw.data, offsets.tolist()
    hashes = (xxh3_64_intdigest(data[start:stop]) for start, stop in pairwise(bounds))
    return np.fromiter(hashes, np.uint64, len(text))


def id_column(text: pa.Array) -> pa.Array:
    """Return the column `id` of these sentences: the bits of `ids` as int64.

    >>> id_column(pa.array(["他的病情已经好转。"])).to_pylist()
    [3202059530852669036]
    """
    return pa.array(ids(text).view(np.int64))


def is_validation(ids: Uint64s | Int64s, holdout: float) -> Mask:
    """Return whether each sentence is held out; `holdout` is the fraction of all ids that are.

    A larger holdout only adds sentences. Order, seed and shards do not matter.

    >>> is_validation(np.arange(5, dtype=np.uint64), 0.0).any()
    np.False_
    """
    if not 0.0 <= holdout <= 1.0:
        raise UsageError(f"holdout = {holdout} must be from 0 to 1")
    if holdout == 1.0:
        return np.ones(len(ids), dtype=np.bool_)
    return splitmix64(ids.view(np.uint64) ^ _PURPOSE) < np.uint64(int(holdout * 2**64))


class Dedup:
    """A set of ids that reports which are new.

    >>> seen = Dedup()
    >>> seen.first(np.array([5, 7, 5], dtype=np.uint64)).tolist()
    [True, True, False]
    >>> seen.first(np.array([7, 0], dtype=np.uint64)).tolist()
    [False, True]
    """

    def __init__(self) -> None:
        self._slots: Uint64s = np.zeros(1 << 16, dtype=np.uint64)
        self._used = 0
        self._zero_seen = False  # 0 marks a free slot, so the id 0 is kept apart

    def __len__(self) -> int:
        return self._used + self._zero_seen

    @property
    def nbytes(self) -> int:
        """Return the memory of the table, in bytes."""
        return self._slots.nbytes

    def first(self, ids: Uint64s | Int64s) -> Mask:
        """Return, for each id, whether it was neither seen before nor occurs earlier in `ids`."""
        ids = ids.view(np.uint64)
        new = np.empty(len(ids), dtype=np.bool_)
        for start in range(0, len(ids), _STEP):
            part = ids[start : start + _STEP]
            self._reserve(self._used + len(part))
            added, zero = _insert(self._slots, part, new[start : start + _STEP], self._zero_seen)
            self._used += int(added)
            self._zero_seen = bool(zero)
        return new

    def _reserve(self, count: int) -> None:
        slots = len(self._slots)
        while count > _FILL * slots:
            slots *= 2
        if slots > len(self._slots):
            old, self._slots = self._slots, np.zeros(slots, dtype=np.uint64)
            _insert(self._slots, old[old != 0], np.empty(self._used, dtype=np.bool_), True)


@compiled
def _insert(slots: Uint64s, ids: Uint64s, new: Mask, zero_seen: bool) -> tuple[int, bool]:
    mask = np.uint64(slots.size - 1)
    shift = np.uint64(64)  # the highest bits of the product are the best mixed
    size = slots.size
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    added = 0
    for row in range(ids.size):
        value = ids[row]
        new[row] = False
        if value == 0:
            new[row] = not zero_seen
            zero_seen = True
            continue
        place = ((value ^ (value >> np.uint64(32))) * _MIX) >> shift
        while slots[place] != 0 and slots[place] != value:
            place = (place + np.uint64(1)) & mask
        if slots[place] == 0:
            slots[place] = value
            new[row] = True
            added += 1
    return added, zero_seen
