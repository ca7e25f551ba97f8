"""Draws of replacements, the writing of a source and its edits, and the distance of both texts.

Bytes are copied in blocks, edits written in columns. The Levenshtein distance of several edits is
computed where it is not the sum of their costs.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cecdata.common.kernels import called, inlined
from cecdata.perturbation.kernel import layout

_BLOCK = 32  # bytes copied at a time
_TEXT, _KIND = (1 << layout.TEXT_BITS) - 1, (1 << layout.KIND_BITS) - 1
_SPAN_TEXT = (1 << layout.SPAN_TEXT_BITS) - 1
_COST = layout.SPAN_TEXT_BITS + layout.KIND_BITS
_ALIAS = _COST + layout.COST_BITS


@inlined
def edit_character(tables, operator, position, length, scratch, data, random, shift, out, edit):
    """Write an edit of one character, or before one, then the rest; return (shift, facts).

    From the end of the edit on, byte b of the target is at shift + b of the output.
    `facts` is the second column of the replacement's row in `Tables.texts`.
    """
    inserts = np.int64(tables.inserts[operator])
    bounds = scratch.bounds
    slot = np.uint32(0) if inserts else scratch.slots[position]
    packed = draw_candidate(tables, operator, slot, random)
    text = np.int64(packed & np.uint64(_TEXT))
    done, to = position + 1 - inserts, shift + bounds[position]
    facts = tables.texts[text, 1]
    size = np.int64(facts & np.uint64(0xFF))
    _store_word(out.data, np.uint64(to), tables.texts[text, 0])
    copy_bytes(out.data, to + size, data, bounds[done], bounds[length])
    _write_edit(
        out, edit, position, done, slot, text, operator, packed >> np.uint64(layout.TEXT_BITS)
    )
    return shift + size - (bounds[done] - bounds[position]), facts


@inlined
def edit_span(tables, operator, position, length, scratch, data, random, shift, out, edit):
    """Write an edit of a span, then the rest; return (shift, the edit's Levenshtein distance)."""
    spans, bounds = tables.spans, scratch.bounds
    column = np.int64(spans.row[operator])
    row = spans.rows[np.int64(scratch.spans[column, position]), column]
    chosen = draw_span_candidate(row, spans.candidates, random)
    packed, signs = spans.candidates[chosen, 0], spans.candidates[chosen, 1]
    done, to = position + np.int64(row >> np.uint64(layout.SIZE_SHIFT)), shift + bounds[position]
    start = to
    for _ in range(layout.LONGEST):
        text = np.int64(signs & np.uint64(_TEXT))
        _store_word(out.data, np.uint64(to), tables.texts[text, 0])
        to += np.int64(tables.texts[text, 1] & np.uint64(0xFF))
        signs >>= np.uint64(layout.TEXT_BITS)
    copy_bytes(out.data, to, data, bounds[done], bounds[length])
    singles = len(tables.texts)
    old = singles + np.int64((row >> np.uint64(layout.SOURCE_SHIFT)) & np.uint64(_SPAN_TEXT))
    new = singles + np.int64(packed & np.uint64(_SPAN_TEXT))
    _write_edit(
        out, edit, position, done, old, new, operator, packed >> np.uint64(layout.SPAN_TEXT_BITS)
    )
    cost = np.int64(packed >> np.uint64(_COST)) & ((1 << layout.COST_BITS) - 1)
    return shift + (to - start) - (bounds[done] - bounds[position]), cost


@inlined
def _write_edit(out, edit, start, end, old, new, operator, kind):
    """Write the facts of an edit to row `edit` of the output; `kind` may have bits above it."""
    out.start[edit] = start
    out.end[edit] = end
    out.old[edit] = old
    out.new[edit] = new
    out.edited_by[edit] = operator
    out.kind[edit] = np.int8(kind & np.uint64(_KIND))


@inlined
def draw_candidate(tables, operator, slot, random):
    """Return a replacement by Walker's alias method: its text, its kind above, then other bits."""
    scaled = (random >> np.uint64(32)) * np.uint64(tables.rows[operator, slot, 1])
    packed = tables.candidates[
        np.uint64(tables.rows[operator, slot, 0]) + (scaled >> np.uint64(32))
    ]
    fraction = np.uint32(random) >> np.uint32(32 - layout.KEEP_BITS)
    keep = np.uint32(packed >> np.uint64(2 * (layout.TEXT_BITS + layout.KIND_BITS)))
    if fraction >= keep:
        packed >>= np.uint64(layout.TEXT_BITS + layout.KIND_BITS)
    return packed


@inlined
def draw_span_candidate(row, candidates, random):
    """Return the candidate that replaces a span with this word of `SpanTables.rows`, as a row."""
    first = row & np.uint64((1 << layout.COUNT_SHIFT) - 1)
    count = (row >> np.uint64(layout.COUNT_SHIFT)) & np.uint64(
        (1 << (layout.SOURCE_SHIFT - layout.COUNT_SHIFT)) - 1
    )
    chosen = first + (((random >> np.uint64(32)) * count) >> np.uint64(32))
    packed = candidates[chosen, 0]
    fraction = np.uint32(random) >> np.uint32(32 - layout.KEEP_BITS)
    if fraction >= np.uint32(packed >> np.uint64(64 - layout.KEEP_BITS)):
        chosen = first + ((packed >> np.uint64(_ALIAS)) & np.uint64((1 << layout.ALIAS_BITS) - 1))
    return chosen


@inlined
def copy_bytes(out, at, data, start, stop):
    """Copy data[start:stop] to out[at:], in blocks: up to 31 bytes beyond are overwritten."""
    size, to, source = np.uint64(stop - start), np.uint64(at), np.uint64(start)
    done = np.uint64(0)
    if np.uint64(stop) + np.uint64(_BLOCK) <= np.uint64(len(data)):
        while done < size:
            _copy_block(out, to + done, data, source + done)
            done += np.uint64(_BLOCK)
    else:
        while done < size:
            out[to + done] = data[source + done]
            done += np.uint64(1)


@intrinsic
def _copy_block(typing_context, out, to, data, source):
    """Copy data[source:source + 32] to out[to:] as one unaligned load and store, unchecked."""

    def generate(context, builder, signature, arguments):
        out_type, _, data_type, _ = signature.args
        to_array = context.make_array(out_type)(context, builder, arguments[0])
        from_array = context.make_array(data_type)(context, builder, arguments[2])
        block = ir.VectorType(ir.IntType(8), _BLOCK).as_pointer()
        target = builder.bitcast(builder.gep(to_array.data, [arguments[1]]), block)
        origin = builder.bitcast(builder.gep(from_array.data, [arguments[3]]), block)
        builder.store(builder.load(origin, align=1), target, align=1)
        return context.get_dummy_value()

    return types.void(out, to, data, source), generate


@intrinsic
def _store_word(typing_context, out, to, word):
    """Store the bytes of a 64-bit word in out[to:to + 8], lowest first; unaligned, unchecked."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        position = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(position, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(out, to, word), generate


@inlined
def is_new(points, length, facts):
    """Return whether the target holds no character of a text, given its row of `Tables.texts`."""
    first = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
    second = np.uint32(facts >> np.uint64(32))
    occurs = _does_occur_in(points, length, first)
    if second:
        occurs |= _does_occur_in(points, length, second)
    return not occurs


@inlined
def _does_occur_in(points, length, wanted):
    """Return whether one of points[:length] is `wanted`."""
    occurs = np.uint32(0)
    for i in range(np.uint64(length)):  # without an early exit the compiler vectorises it
        occurs |= np.uint32(points[i] == wanted)
    return occurs != 0


@called
def measure_distance(out, first, last, tables, bound, scratch):
    """Return the distance of edits first..last - 1 of one pair, known to be at most `bound`."""
    start, end = np.int64(out.start[first]), np.int64(out.end[last - 1])
    length = _write_source(start, out, first, last, tables, scratch)
    # source and target are equal before the first edit and after the last
    return _measure_distance_in_band(start, end - start, length, bound, scratch)


@inlined
def _write_source(start, out, first, last, tables, scratch):
    """Write the source's code points from the first to the last edit; return their number."""
    points, written = scratch.points, scratch.written
    length, done = 0, start
    singles = len(tables.texts)  # texts of spans are numbered behind these
    for e in range(first, last):
        for i in range(done, out.start[e]):
            written[length] = points[i]
            length += 1
        span = out.new[e] - singles
        if span >= 0:
            for j in range(tables.spans.points.shape[1]):
                if tables.spans.points[span, j]:
                    written[length] = tables.spans.points[span, j]
                    length += 1
        else:
            facts = tables.texts[out.new[e], 1]
            written[length] = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
            written[length + 1] = np.uint32(facts >> np.uint64(32))
            length += np.int64(written[length] != 0) + np.int64(written[length + 1] != 0)
        done = out.end[e]
    return length


@inlined
def _measure_distance_in_band(start, target_size, source_size, bound, scratch):
    """Return the distance of points[start:][:target_size] and written[:source_size], ≤ `bound`."""
    target, source = scratch.points, scratch.written
    previous, current = scratch.previous, scratch.current
    far = bound + 1
    for j in range(source_size + 1):
        previous[j] = j if j <= bound else far
    for i in range(1, target_size + 1):
        low, high = max(1, i - bound), min(source_size, i + bound)
        current[low - 1] = i if low == 1 and i <= bound else far
        for j in range(low, high + 1):
            best = previous[j - 1] + (target[start + i - 1] != source[j - 1])
            if j < i + bound and previous[j] + 1 < best:
                best = previous[j] + 1
            if current[j - 1] + 1 < best:
                best = current[j - 1] + 1
            current[j] = best
        for j in range(low - 1, high + 1):
            previous[j] = current[j]
        if high < source_size:
            previous[high + 1] = far
    return previous[source_size]
