"""Where operators that rewrite two to four characters may strike."""

from __future__ import annotations

import numpy as np

from cecdata.perturb.kernel.jit import called, inlined
from cecdata.perturb.kernel.layout import (
    ALONE,
    CLINGS_AFTER,
    CLINGS_BEFORE,
    FIRST_SHIFT,
    KEY_FACTOR,
    KNOWN_BITS,
    LAST,
    OPERATORS_SHIFT,
    SPAN_BITS,
)
from cecdata.perturb.kernel.scan import clings

_AT_ONCE = 16  # places looked at together


@called
def find_spans(n, tables, room, wanted):
    """Marks the places from which rewriting operators may strike a span, the longest there.

    Spans of one operator do not overlap: the first from the left is taken. `wanted` are the
    operators looked for, as bits; room.free stays 0 where there is none.
    """
    free, at = room.free, 0
    for s in range(len(free)):
        free[s] = 0 if (wanted >> s) & 1 else free[s]
    while at < n - 1:
        stop = min(at + _AT_ONCE, n - 1)
        count = _look_up(at, stop, tables.spans, room)
        for c in range(count):
            i = np.int64(room.maybe[c])
            if i >= at:
                _strike_from(i, n, room.heads[c], tables, room, wanted)
                at = n  # no operator may strike before
                for s in range(len(free)):
                    at = min(at, free[s]) if (wanted >> s) & 1 else at
        at = max(at, stop)


@inlined
def _look_up(start, stop, spans, room):
    """Places start..stop - 1 where a span may begin, into `room.maybe` and `heads`; how many."""
    slots, maybe, heads = room.slots, room.maybe, room.heads
    wrap, count = np.uint64(len(spans.heads) - 1), np.uint64(0)
    for i in range(np.uint64(start), np.uint64(stop)):
        head = np.uint64(slots[i] | slots[i + np.uint64(1)] << np.uint32(16))
        spread = head * np.uint64(KEY_FACTOR)
        # a bitmap of 64 KiB answers most questions without leaving the cache; no branch
        bit = spread >> np.uint64(64 - KNOWN_BITS)
        maybe[count], heads[count] = i, (spread >> np.uint64(32)) & wrap
        count += (spans.starts[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)
    for c in range(count):  # these loads wait for memory, and so they wait together
        heads[c] = spans.heads[heads[c]]
    return np.int64(count)


@inlined
def _strike_from(i, n, entry, tables, room, wanted):
    """Marks what may strike from i on, looking from an entry of the hash table."""
    slots = room.slots
    head = np.uint64(slots[i] | slots[i + 1] << np.uint32(16))
    if entry & np.uint64(0xFFFFFFFF) != head:
        entry = _further(head, tables.spans.heads)
    # part of a larger visible character? What has a slot clings to nothing.
    if i > 0 and slots[i - 1] == 0:
        whole = not clings(tables.code_points[room.points[i - 1]], CLINGS_AFTER)
        entry = entry if whole else np.uint64(0)
    first = np.int64((entry >> np.uint64(FIRST_SHIFT)) & np.uint64((1 << SPAN_BITS) - 1))
    if entry and not entry >> np.uint64(ALONE) and _longer_from(head, slots[i + 2], tables.spans):
        _strike_longer(i, n, first, tables, room, wanted)
    able = np.int64((entry >> np.uint64(OPERATORS_SHIFT)) & np.uint64(0xFF)) & wanted
    if able and _ends(i + 2, n, tables, room):
        _mark(i, 2, first, able, tables.spans.operator, room)


@inlined
def _longer_from(head, third, spans):
    """May a span begin with these three slots? A bitmap: seldom yes where it is no."""
    spread = (head | np.uint64(third) << np.uint64(32)) * np.uint64(KEY_FACTOR)
    bit = spread >> np.uint64(64 - KNOWN_BITS)
    return (spans.longer[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1) != 0


@inlined
def _strike_longer(i, n, first, tables, room, wanted):
    """Marks the spans of three and four characters there, among those with the same first two."""
    span, more = first, True
    while more:
        tail = tables.spans.tails[span]
        size = _size_at(tail, room.slots, i)
        able = np.int64((tail >> np.uint64(OPERATORS_SHIFT)) & np.uint64(0xFF)) & wanted
        if size and able and _ends(i + size, n, tables, room):
            _mark(i, size, span, able, tables.spans.operator, room)
        more = not tail >> np.uint64(LAST)
        span += 1


@inlined
def _ends(end, n, tables, room):
    """Does a visible character end before `end`?"""
    slot = room.slots[end]
    return end >= n or slot != 0 or not clings(tables.code_points[room.points[end]], CLINGS_BEFORE)


@inlined
def _further(head, heads):
    """The entry of the hash table where another stands in its place; 0 if there is none."""
    wrap = np.uint64(len(heads) - 1)
    h = ((head * np.uint64(KEY_FACTOR)) >> np.uint64(32)) & wrap
    while heads[h] != 0 and heads[h] & np.uint64(0xFFFFFFFF) != head:
        h = (h + np.uint64(1)) & wrap
    return heads[h]


@inlined
def _size_at(tail, slots, i):
    """3 or 4: characters of the span with this tail, if its last stand there; else 0."""
    third = np.uint32(tail & np.uint64(0xFFFF))
    fourth = np.uint32((tail >> np.uint64(16)) & np.uint64(0xFFFF))
    if third != slots[i + 2]:
        return 0
    if fourth == 0:
        return 3
    if fourth != slots[i + 3]:
        return 0
    return 4


@inlined
def _mark(i, size, span, able, operator, room):
    """A span for those of the able operators that are free there."""
    for s in range(len(room.free)):
        if (able >> s) & 1 and i >= room.free[s]:
            room.mask[i] |= np.uint16(1) << operator[s]
            room.spans[s, i], room.free[s] = span, i + size
