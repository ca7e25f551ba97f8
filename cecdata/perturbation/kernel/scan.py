"""Reading of a sentence: its code points, and the operators that may edit each position.

A head is the two characters that a span begins with; `span_tables` says how it is looked up. A
processor cannot predict which positions begin a span: a branch on it would be mispredicted at
every third. So `find_heads` avoids such branches, and its tables are small enough for the cache.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from cecdata.common.kernels import called, inlined, read_code_point
from cecdata.perturbation.kernel import layout
from cecdata.perturbation.kernel.layout import read_bits

_CR, _LF, _LESS, _MORE = 0x0D, 0x0A, 0x3C, 0x3E
_LONGEST_PLACEHOLDER = 32  # most code points between < and >
_GOES_ON = 2  # in `protected`: this code point belongs to the run of the one before
_TAG = np.uint64(layout.TAG_BITS)  # of a head spread over 32 bits; its bit in `starts` is above


@inlined
def read_sentence(data, start, stop, tables, insert_mask, scratch):
    """Read the sentence data[start:stop], in valid UTF-8; return its number of code points.

    Into `scratch` go its code points, the byte where each begins, the slot of each (0: none), and
    the operators that may edit at each, or insert before it. `insert_mask` has a bit for each
    operator that inserts.
    """
    points, bounds, mask, slots = scratch.points, scratch.bounds, scratch.mask, scratch.slots
    code_points, eligible = tables.code_points, tables.eligible
    length, at, end = np.uint64(0), np.uint64(start), np.uint64(stop)
    bits, may_cling = np.uint16(insert_mask), False  # to a neighbour, or in a placeholder
    while at < end:
        bounds[length] = at
        point, at = read_code_point(data, at)
        class_or_slot = np.uint32(code_points[point])
        slot = np.uint32(0)
        if class_or_slot >= layout.FIRST_SLOT:
            slot = class_or_slot - np.uint32(layout.FIRST_SLOT - 1)
        elif class_or_slot != layout.PLAIN or point == _LESS or point == _CR:
            may_cling = True
        points[length] = point
        slots[length] = slot
        mask[length] = eligible[slot] | bits
        length += np.uint64(1)
    bounds[length] = stop
    mask[length], slots[length], slots[length + np.uint64(1)] = bits, 0, 0
    if may_cling:
        _keep_clusters(np.int64(length), code_points, insert_mask, scratch)
        _keep_placeholders(np.int64(length), insert_mask, scratch)
    return np.int64(length)


@inlined
def apply_protection(protected, first, length, insert_mask, scratch):
    """Keep runs of protected code points whole.

    Those of the sentence are protected[first:first + length]. Of a run the first code point is 1
    and the others 2; nothing is inserted before a 2.
    """
    for i in range(length):
        mark = protected[first + i]
        if mark:
            before = np.uint16(0) if mark == _GOES_ON else np.uint16(insert_mask)
            scratch.mask[i] &= before
            scratch.slots[i] = 0  # in no span


@inlined
def clings(value, how):
    """Return whether a class of `Tables.code_points` joins its neighbour on the side `how`."""
    return value == how or value == layout.CLINGS_BOTH


@called
def _keep_clusters(length, code_points, insert_mask, scratch):
    """Forbid an insertion inside a grapheme cluster, and the replacement of a base with marks."""
    points, mask, slots, before = scratch.points, scratch.mask, scratch.slots, layout.PLAIN
    for i in range(length + 1):
        here = layout.PLAIN
        if i < length and code_points[points[i]] < layout.FIRST_SLOT:
            here = np.int64(code_points[points[i]])
        if clings(before, layout.CLINGS_AFTER):
            mask[i], slots[i] = 0, 0  # a position without a slot is in no span
        if clings(here, layout.CLINGS_BEFORE):
            mask[i] &= ~np.uint16(insert_mask)
            if i > 0:
                mask[i - 1] &= np.uint16(insert_mask)
                slots[i - 1] = 0
        if before == layout.REGIONAL and here == layout.REGIONAL:
            mask[i] &= ~np.uint16(insert_mask)
        if 0 < i < length and points[i - 1] == _CR and points[i] == _LF:
            mask[i] &= ~np.uint16(insert_mask)
        before = here


@called
def _keep_placeholders(length, insert_mask, scratch):
    """Keep a typed placeholder such as <ADDR> whole; an insertion may come before it."""
    points, mask, i = scratch.points, scratch.mask, 0
    while i < length:
        end = _find_placeholder_end(points, i, length) if points[i] == _LESS else i
        if end > i:
            mask[i] &= np.uint16(insert_mask)
            for j in range(i + 1, end):
                mask[j] = 0
            for j in range(i, end):
                scratch.slots[j] = 0  # in no span
        i = max(end, i + 1)


@inlined
def _find_placeholder_end(points, i, length):
    """Return the end of a typed placeholder such as <ADDR> that starts at i, else i."""
    # its name has capitals and underscores, and behind the first sign also digits
    j = i + 1
    limit = min(length, j + _LONGEST_PLACEHOLDER)
    while j < limit and (
        0x41 <= points[j] <= 0x5A or points[j] == 0x5F or (j > i + 1 and 0x30 <= points[j] <= 0x39)
    ):
        j += 1
    if j > i + 1 and j < length and points[j] == _MORE:
        return j + 1
    return i


@intrinsic
def count_bits(typing_context, word):
    """Count the set bits of a 64-bit word, as one instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@inlined
def find_heads(length, spans, scratch):
    """Write the positions where a span may begin into `scratch.maybe`, and into `begun` for each:
    the row of `heads` in the upper half, then the bits of its operators, and in the lowest bit
    whether a longer span may follow. The bits are 0 where the bitmap was wrong.
    """
    slots, maybe, count = scratch.slots, scratch.maybe, np.uint64(0)
    for i in range(np.uint64(max(length - 1, 0))):
        maybe[count] = i  # always written, but kept only if the bit is set
        # a bitmap of 64 KiB answers most questions without leaving the cache
        count += _read_bit(spans.starts, np.uint64(_spread_head(slots, i)) >> _TAG)
    for c in range(count):
        i = np.uint64(maybe[c])
        place, entry, is_head = _find_entry(_spread_head(slots, i), spans)
        able = is_head * read_bits(np.uint64(entry), layout.OPERATORS_SHIFT, layout.MOST_REWRITING)
        goes_on = is_head * read_bits(np.uint64(entry), layout.GOES_ON, 1)
        goes_on &= _may_go_on(slots, i, spans.longer)
        scratch.begun[c] = place << np.uint64(32) | able << np.uint64(1) | goes_on
    scratch.count[0] = count


@inlined
def _read_bit(bitmap, number):
    """Return a bit of a bitmap in words of 64 bits."""
    return (bitmap[number >> np.uint64(6)] >> (number & np.uint64(63))) & np.uint64(1)


@inlined
def _spread_head(slots, i):
    """Return the slots of the two characters from position i on, spread over 32 bits."""
    head = slots[i] | slots[i + np.uint64(1)] << np.uint32(16)
    return np.uint32(head * np.uint32(layout.PAIR_FACTOR))


@inlined
def _find_entry(spread, spans):
    """Find two slots, spread, whose bit is set, in `heads`: (place, entry, 1 if they are a head).

    They are none where another tag is there: the bit and the tag together identify a head.
    """
    bit = np.uint64(spread) >> _TAG
    word, below = bit >> np.uint64(6), (np.uint64(1) << (bit & np.uint64(63))) - np.uint64(1)
    place = np.uint64(spans.before[word]) + count_bits(spans.starts[word] & below)
    entry = spans.heads[place]
    tag_mask = np.uint32((1 << layout.TAG_BITS) - 1)
    if entry >> np.uint32(layout.SHARED) & np.uint32(1):  # one in nine: its heads are elsewhere
        place = read_bits(np.uint64(entry), 0, layout.SHARED)
        entry = spans.heads[place]
        while (entry ^ spread) & tag_mask and not entry >> np.uint32(layout.FINAL):
            place += np.uint64(1)
            entry = spans.heads[place]
    return place, entry, np.uint64((entry ^ spread) & tag_mask == 0)


@inlined
def _may_go_on(slots, i, longer):
    """Return 1 if a span may begin with the three characters from i on; false hits are rare."""
    three = np.uint64(slots[i] | slots[i + np.uint64(1)] << np.uint32(16))
    three |= np.uint64(slots[i + np.uint64(2)]) << np.uint64(32)
    spread = three * np.uint64(layout.KEY_FACTOR)
    return _read_bit(longer, spread >> np.uint64(64 - layout.KNOWN_BITS))


@inlined
def mark_spans(column, tables, scratch):
    """Mark the positions from which a rewriting operator may edit, after `find_heads`.

    `column` is the operator's in `SpanTables.rows`. Spans of one operator do not overlap: the
    longest from the left is taken. `scratch.span_counts` gets their number.
    """
    free_from, count, operator = np.int64(0), np.int64(0), np.int64(tables.spans.operator[column])
    for c in range(scratch.count[0]):
        i, begun = np.int64(scratch.maybe[c]), scratch.begun[c]
        row = np.int64(begun >> np.uint64(32))  # that of a head is its place in `heads`
        size = np.int64(read_bits(begun, 1 + column, 1)) * 2
        if begun & np.uint64(1):
            row, size = _find_longest(i, column, row, size, tables.spans, scratch.slots)
        fits = np.int64((size > 0) & (i >= free_from))
        scratch.mask[i] |= np.uint16(fits << operator)
        scratch.spans[column, i] = row
        free_from = i + size if fits else free_from
        count += fits
    scratch.span_counts[column] = count


@inlined
def _find_longest(i, column, head, size, spans, slots):
    """Return the longest span of an operator from position i on: (its row, its characters).

    `head` is the row of the first two characters, `size` 2 where they are themselves a span, or 0.
    """
    tail, longest_row, more = np.int64(spans.first[head]), head, True
    while more:
        entry = spans.tails[tail]
        able = np.int64(read_bits(entry, layout.TAIL_OPERATORS_SHIFT + column, 1))
        longer = able * _match_tail(entry, slots, i)
        if longer > size:
            longest_row, size = len(spans.heads) + tail, longer
        more = not entry >> np.uint64(layout.LAST)
        tail += 1
    return longest_row, size


@inlined
def _match_tail(tail, slots, i):
    """Return the number of characters, 3 or 4, of the span with this tail, or 0 if it differs."""
    third, fourth = np.uint32(read_bits(tail, 0, 16)), np.uint32(read_bits(tail, 16, 16))
    if third != slots[i + 2] or (fourth != 0 and fourth != slots[i + 3]):
        return 0
    return 4 if fourth else 3
