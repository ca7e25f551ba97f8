"""The places where operators that rewrite two to four characters may strike.

A processor cannot predict which places begin a span: a branch on it would be mispredicted at every
third place. So this module avoids such branches, and its tables are small enough for the cache.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from cecdata.common.kernels.jit import inlined
from cecdata.perturbation.kernel.layout import (
    FINAL,
    GOES_ON,
    KEY_FACTOR,
    KNOWN_BITS,
    LAST,
    OPERATORS_SHIFT,
    PAIR_FACTOR,
    SHARED,
    TAG_BITS,
    TAIL_OPERATORS_SHIFT,
)

_TAG = (1 << TAG_BITS) - 1
_OPERATORS = (1 << (GOES_ON - OPERATORS_SHIFT)) - 1


@intrinsic
def set_bits(typing_context, word):
    """Count the set bits of a 64-bit word, as one instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@inlined
def look_up(n, spans, room):
    """Write the places where a span may begin into `room.maybe`, their heads into `begun`."""
    slots, maybe, count = room.slots, room.maybe, np.uint64(0)
    for i in range(np.uint64(max(n - 1, 0))):
        bit = np.uint64(_spread(slots, i) >> np.uint32(TAG_BITS))
        maybe[count] = i
        # a bitmap of 64 KiB answers most questions without leaving the cache
        count += (spans.starts[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)
    for c in range(count):
        i = np.uint64(maybe[c])
        spread = _spread(slots, i)
        place, entry = _entry_of(spread, spans)
        # the bit and the tag together identify a head
        known = np.uint64((entry ^ spread) & np.uint32(_TAG) == 0)
        able = np.uint64((entry >> np.uint32(OPERATORS_SHIFT)) & np.uint32(_OPERATORS)) * known
        more = np.uint64((entry >> np.uint32(GOES_ON)) & np.uint32(1)) * known
        more &= _may_go_on(slots, i, spans.longer)
        room.begun[c] = place << np.uint64(32) | able << np.uint64(1) | more
    room.count[0] = count


@inlined
def _spread(slots, i):
    """Return the slots of the two characters from place i on, spread over 32 bits."""
    head = slots[i] | slots[i + np.uint64(1)] << np.uint32(16)
    return np.uint32(head * np.uint32(PAIR_FACTOR))


@inlined
def _entry_of(spread, spans):
    """Return the (place, entry) in `heads` of two slots whose bit is set."""
    bit = np.uint64(spread >> np.uint32(TAG_BITS))
    word, below = bit >> np.uint64(6), (np.uint64(1) << (bit & np.uint64(63))) - np.uint64(1)
    place = np.uint64(spans.before[word]) + set_bits(spans.starts[word] & below)
    entry = spans.heads[place]
    if entry >> np.uint32(SHARED) & np.uint32(1):  # one in nine
        place = np.uint64(entry & np.uint32((1 << SHARED) - 1))
        entry = spans.heads[place]
        while (entry ^ spread) & np.uint32(_TAG) and not entry >> np.uint32(FINAL):
            place += np.uint64(1)
            entry = spans.heads[place]
    return place, entry


@inlined
def _may_go_on(slots, i, longer):
    """Return 1 if a span may begin with the three characters from i on; false hits are rare."""
    three = np.uint64(slots[i] | slots[i + np.uint64(1)] << np.uint32(16))
    three |= np.uint64(slots[i + np.uint64(2)]) << np.uint64(32)
    bit = (three * np.uint64(KEY_FACTOR)) >> np.uint64(64 - KNOWN_BITS)
    return (longer[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)


@inlined
def mark_spans(s, tables, room):
    """Mark the places from which rewriting operator s may strike, after `look_up`.

    Spans of one operator do not overlap: the longest from the left is taken. `room.found` gets
    their number.
    """
    free, count, operator = np.int64(0), np.int64(0), np.int64(tables.spans.operator[s])
    for c in range(room.count[0]):
        i, begun = np.int64(room.maybe[c]), room.begun[c]
        span = np.int64(begun >> np.uint64(32))
        size = np.int64((begun >> np.uint64(1 + s)) & np.uint64(1)) * 2
        if begun & np.uint64(1):
            span, size = _longest(i, s, span, size, tables.spans, room.slots)
        fits = np.int64((size > 0) & (i >= free))
        room.mask[i] |= np.uint16(fits << operator)
        room.spans[s, i] = span
        free = i + size if fits else free
        count += fits
    room.found[s] = count


@inlined
def _longest(i, s, head, size, spans, slots):
    """Return the longest span of operator s from i on: (its row, its characters).

    `size` is 2 where the head itself is one of s, else 0.
    """
    tail, longest, more = np.int64(spans.first[head]), head, True
    while more:
        entry = spans.tails[tail]
        longer = np.int64((entry >> np.uint64(TAIL_OPERATORS_SHIFT + s)) & np.uint64(1))
        longer *= _size_at(entry, slots, i)
        if longer > size:
            longest, size = len(spans.heads) + tail, longer
        more = not entry >> np.uint64(LAST)
        tail += 1
    return longest, size


@inlined
def _size_at(tail, slots, i):
    """Return the number of characters, 3 or 4, of the span with this tail, or 0 if it differs."""
    third = np.uint32(tail & np.uint64(0xFFFF))
    fourth = np.uint32((tail >> np.uint64(16)) & np.uint64(0xFFFF))
    if third != slots[i + 2]:
        return 0
    if fourth == 0:
        return 3
    if fourth != slots[i + 3]:
        return 0
    return 4
