"""Draws of replacements, the writing of a source and its edits, and the distance of both texts.

Bytes are copied in blocks, edits written in columns. The Levenshtein distance of several edits is
computed where it is not the sum of their costs. A text's facts are the second column of
`Tables.texts`: its size in bytes and its code points.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cecdata.common.kernels import called, inlined
from cecdata.perturbation.kernel import layout
from cecdata.perturbation.kernel.layout import read_bits
from cecdata.perturbation.kernel.positions import draw_below

_BLOCK = 32  # bytes copied at a time
_ENTRY_BITS = layout.TEXT_BITS + layout.KIND_BITS  # of a text and its kind, in a candidate
# The first bits of fields of `SpanTables.candidates`.
_COST = layout.SPAN_TEXT_BITS + layout.KIND_BITS
_ALIAS = _COST + layout.COST_BITS


@inlined
def edit_character(tables, operator, position, length, scratch, data, random, shift, out, edit):
    """Write an edit of one character, or before one, then the rest; return (shift, facts).

    Before the call and after it, byte b of the target that is still to be written is at shift + b
    of the output. `random` draws the replacement, whose facts are returned; `edit` is the edit's
    row in `out`.
    """
    inserts = np.int64(tables.inserts[operator])
    slot = np.uint32(0) if inserts else scratch.slots[position]
    candidate = draw_candidate(tables, operator, slot, random)
    text = np.int64(read_bits(candidate, 0, layout.TEXT_BITS))
    kind = read_bits(candidate, layout.TEXT_BITS, layout.KIND_BITS)
    end, bounds = position + 1 - inserts, scratch.bounds
    written = _write_text(tables, text, out.data, shift + bounds[position])
    copy_bytes(out.data, written, data, bounds[end], bounds[length])
    _write_edit(out, edit, position, end, slot, text, operator, kind)
    return written - bounds[end], tables.texts[text, 1]


@inlined
def edit_span(tables, operator, position, length, scratch, data, random, shift, out, edit):
    """Write an edit of a span as `edit_character` does; return (shift, Levenshtein distance)."""
    spans, bounds = tables.spans, scratch.bounds
    column = np.int64(spans.column[operator])
    span = spans.rows[np.int64(scratch.spans[column, position]), column]
    chosen = draw_span_candidate(span, spans.candidates, random)
    candidate, characters = spans.candidates[chosen, 0], spans.candidates[chosen, 1]
    written = shift + bounds[position]
    for i in range(layout.LONGEST):
        text = read_bits(characters, i * layout.TEXT_BITS, layout.TEXT_BITS)
        written = _write_text(tables, np.int64(text), out.data, written)
    end = position + np.int64(span >> np.uint64(layout.SIZE_SHIFT))
    copy_bytes(out.data, written, data, bounds[end], bounds[length])
    singles = len(tables.texts)  # texts of spans are numbered behind these
    old = singles + np.int64(read_bits(span, layout.SOURCE_SHIFT, layout.SPAN_TEXT_BITS))
    new = singles + np.int64(read_bits(candidate, 0, layout.SPAN_TEXT_BITS))
    kind = read_bits(candidate, layout.SPAN_TEXT_BITS, layout.KIND_BITS)
    _write_edit(out, edit, position, end, old, new, operator, kind)
    return written - bounds[end], np.int64(read_bits(candidate, _COST, layout.COST_BITS))


@inlined
def _write_text(tables, text, data, at):
    """Write the UTF-8 of a row of `Tables.texts` to data[at:]; return the place behind it."""
    _store_word(data, np.uint64(at), tables.texts[text, 0])
    return at + read_size(tables.texts[text, 1])


@inlined
def _write_edit(out, edit, start, end, old, new, operator, kind):
    """Write an edit of target[start:end] to row `edit` of the output; `old` and `new` are texts."""
    out.start[edit] = start
    out.end[edit] = end
    out.old[edit] = old
    out.new[edit] = new
    out.edited_by[edit] = operator
    out.kind[edit] = np.int8(kind)


@inlined
def read_size(facts):
    """Return the bytes of a text's UTF-8, by its facts."""
    return np.int64(read_bits(facts, 0, 8))


@inlined
def read_points(facts):
    """Return the two code points of a text, by its facts; 0 for one that it does not have."""
    return np.uint32(read_bits(facts, 8, 24)), np.uint32(read_bits(facts, 32, 32))


@inlined
def draw_candidate(tables, operator, slot, random):
    """Draw a replacement by Walker's alias method; return its text with its kind above it.

    The upper half of `random` picks a candidate, the lower half the candidate or its alias. Bits
    above the kind are left over.
    """
    first, count = tables.rows[operator, slot, 0], tables.rows[operator, slot, 1]
    candidate = tables.candidates[np.uint64(first) + np.uint64(draw_below(random, count))]
    if not _is_kept(candidate >> np.uint64(2 * _ENTRY_BITS), random):
        candidate >>= np.uint64(_ENTRY_BITS)  # the alias, with its kind
    return candidate


@inlined
def draw_span_candidate(span, candidates, random):
    """Draw a row of `SpanTables.candidates` likewise, by the span's word of `SpanTables.rows`."""
    first = read_bits(span, 0, layout.COUNT_SHIFT)
    count = read_bits(span, layout.COUNT_SHIFT, layout.SOURCE_SHIFT - layout.COUNT_SHIFT)
    chosen = first + np.uint64(draw_below(random, count))
    candidate = candidates[chosen, 0]
    if not _is_kept(candidate >> np.uint64(64 - layout.KEEP_BITS), random):
        chosen = first + read_bits(candidate, _ALIAS, layout.ALIAS_BITS)
    return chosen


@inlined
def _is_kept(keep, random):
    """Return whether a candidate is taken, not its alias; `keep` is that chance, in KEEP_BITS."""
    return np.uint32(random) >> np.uint32(32 - layout.KEEP_BITS) < np.uint32(keep)


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
    """Return whether the target, points[:length], holds no character of the text of these facts."""
    first, second = read_points(facts)
    occurs = _does_occur_in(points, length, first)
    if second:
        occurs |= _does_occur_in(points, length, second)
    return not occurs


@inlined
def _does_occur_in(points, length, wanted):
    occurs = np.uint32(0)
    for i in range(np.uint64(length)):  # without an early exit the compiler vectorises it
        occurs |= np.uint32(points[i] == wanted)
    return occurs != 0


@called
def measure_distance(out, first, last, tables, bound, scratch):
    """Return the Levenshtein distance of a pair, which is known to be at most `bound`.

    Its edits are rows first..last - 1 of `out`.
    """
    # source and target are equal before the first edit and after the last
    start, end = np.int64(out.start[first]), np.int64(out.end[last - 1])
    length = _write_source(start, out, first, last, tables, scratch)
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
            for point in tables.spans.points[span]:
                written[length] = point
                length += np.int64(point != 0)
        else:
            for point in read_points(tables.texts[out.new[e], 1]):
                written[length] = point
                length += np.int64(point != 0)
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
