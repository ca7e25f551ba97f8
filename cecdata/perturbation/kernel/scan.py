"""Reading of a sentence: its code points, and the operators that may strike at each place."""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import called, inlined
from cecdata.common.kernels.utf8 import code_point
from cecdata.perturbation.kernel.layout import (
    CLINGS_AFTER,
    CLINGS_BEFORE,
    CLINGS_BOTH,
    FIRST_SLOT,
    PLAIN,
    REGIONAL,
)

_CR, _LF, _LESS, _MORE = 0x0D, 0x0A, 0x3C, 0x3E
_LONGEST_PLACEHOLDER = 32  # most code points between < and >
_GOES_ON = 2  # in `protected`: this code point belongs to the run of the one before


@inlined
def scan(data, start, stop, tables, insert_mask, room):
    """Read one sentence of valid UTF-8 into `room`; return its number of code points n."""
    points, bounds, mask, slots = room.points, room.bounds, room.mask, room.slots
    code_points, eligible = tables.code_points, tables.eligible
    n, at, end = np.uint64(0), np.uint64(start), np.uint64(stop)
    bits, special = np.uint16(insert_mask), False
    while at < end:
        bounds[n] = at
        point, at = code_point(data, at)
        value = np.uint32(code_points[point])
        slot = np.uint32(0)
        if value >= FIRST_SLOT:
            slot = value - np.uint32(FIRST_SLOT - 1)
        elif value != PLAIN or point == _LESS or point == _CR:
            special = True
        points[n] = point
        slots[n] = slot
        mask[n] = eligible[slot] | bits
        n += np.uint64(1)
    bounds[n] = stop
    mask[n], slots[n], slots[n + np.uint64(1)] = bits, 0, 0
    if special:
        _mend_clusters(np.int64(n), code_points, insert_mask, room)
        _mend_placeholders(np.int64(n), insert_mask, room)
    return np.int64(n)


@inlined
def protect(protected, first, n, insert_mask, room):
    """Keep runs of protected code points whole; protected[first:first + n] are this sentence's.

    Of a run the first code point is 1 and the others 2; nothing is inserted before a 2.
    """
    for i in range(n):
        held = protected[first + i]
        if held:
            before = np.uint16(0) if held == _GOES_ON else np.uint16(insert_mask)
            room.mask[i] &= before
            room.slots[i] = 0  # in no span


@inlined
def clings(value, how):
    """Return whether a code point of this class joins its neighbour on that side."""
    return value == how or value == CLINGS_BOTH


@called
def _mend_clusters(n, code_points, insert_mask, room):
    """Forbid an insertion inside a grapheme cluster, and the replacement of a base with marks."""
    points, mask, slots, before = room.points, room.mask, room.slots, PLAIN
    for i in range(n + 1):
        kind = PLAIN
        if i < n and code_points[points[i]] < FIRST_SLOT:
            kind = np.int64(code_points[points[i]])
        if clings(before, CLINGS_AFTER):
            mask[i], slots[i] = 0, 0  # a place without a slot is in no span
        if clings(kind, CLINGS_BEFORE):
            mask[i] &= ~np.uint16(insert_mask)
            if i > 0:
                mask[i - 1] &= np.uint16(insert_mask)
                slots[i - 1] = 0
        if before == REGIONAL and kind == REGIONAL:
            mask[i] &= ~np.uint16(insert_mask)
        if 0 < i < n and points[i - 1] == _CR and points[i] == _LF:
            mask[i] &= ~np.uint16(insert_mask)
        before = kind


@called
def _mend_placeholders(n, insert_mask, room):
    """Keep a typed placeholder such as <ADDR> whole; an insertion may come before it."""
    points, mask, i = room.points, room.mask, 0
    while i < n:
        end = _placeholder_end(points, i, n) if points[i] == _LESS else i
        if end > i:
            mask[i] &= np.uint16(insert_mask)
            for j in range(i + 1, end):
                mask[j] = 0
            for j in range(i, end):
                room.slots[j] = 0  # in no span
        i = max(end, i + 1)


@inlined
def _placeholder_end(points, i, n):
    """Return the end of a typed placeholder such as <ADDR> that starts at i, else i."""
    j = i + 1
    limit = min(n, j + _LONGEST_PLACEHOLDER)
    while j < limit and (
        0x41 <= points[j] <= 0x5A or points[j] == 0x5F or (j > i + 1 and 0x30 <= points[j] <= 0x39)
    ):
        j += 1
    if j > i + 1 and j < n and points[j] == _MORE:
        return j + 1
    return i
