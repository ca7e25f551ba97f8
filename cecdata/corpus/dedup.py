"""The detection of repeated sentences, with an open-addressing table of 64-bit ids.

Memory: 8 bytes a slot, that is 15 to 29 bytes a sentence (1.5 M sentences: 32 MiB; 38 M: 1 GiB),
and during a doubling also the old table, half as large. Two different sentences with the same id
would count as one; among 38 M sentences the probability of any such collision is 4e-5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels.jit import compiled
from cecdata.corpus.xxh3 import Int64s, Uint64s

Mask = npt.NDArray[np.bool_]

_FILL = 0.55  # maximum share of used slots: chains stay short, and doublings are rare
_STEP = 1 << 16  # ids for which space is reserved at a time, although most may be known
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads ids that are not well spread (Fibonacci hashing)


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
