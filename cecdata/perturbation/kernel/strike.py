"""Draws of replacements, and the writing of a source: bytes in blocks, edits in columns."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cecdata.common.kernels.jit import inlined
from cecdata.perturbation.kernel.layout import (
    ALIAS_BITS,
    COST_BITS,
    COUNT_SHIFT,
    KEEP_BITS,
    KIND_BITS,
    LONGEST,
    SIZE_SHIFT,
    SOURCE_SHIFT,
    SPAN_TEXT_BITS,
    TEXT_BITS,
)

_BLOCK = 32  # bytes copied at a time
_TEXT, _KIND = (1 << TEXT_BITS) - 1, (1 << KIND_BITS) - 1
_SPAN_TEXT = (1 << SPAN_TEXT_BITS) - 1
_COST = SPAN_TEXT_BITS + KIND_BITS
_ALIAS = _COST + COST_BITS


@inlined
def strike_character(tables, struck, place, n, room, data, word, base, out, edit):
    """Write an edit of one character, or before one, then the rest; return (base, facts).

    From the end of the edit on, byte b of the target is at base + b of the output.
    `facts` is the second column of the replacement's row in `Tables.texts`.
    """
    inserts = np.int64(tables.inserts[struck])
    bounds = room.bounds
    slot = np.uint32(0) if inserts else room.slots[place]
    packed = candidate_of(tables, struck, slot, word)
    text = np.int64(packed & np.uint64(_TEXT))
    done, to = place + 1 - inserts, base + bounds[place]
    facts = tables.texts[text, 1]
    size = np.int64(facts & np.uint64(0xFF))
    _store_word(out.data, np.uint64(to), tables.texts[text, 0])
    _copy(out.data, to + size, data, bounds[done], bounds[n])
    _note(out, edit, place, done, slot, text, struck, packed >> np.uint64(TEXT_BITS))
    return base + size - (bounds[done] - bounds[place]), facts


@inlined
def strike_span(tables, struck, place, n, room, data, word, base, out, edit):
    """Write an edit of a span, then the rest; return (base, the edit's Levenshtein distance)."""
    spans, bounds = tables.spans, room.bounds
    s = np.int64(spans.row[struck])
    row = spans.rows[np.int64(room.spans[s, place]), s]
    chosen = span_candidate_of(row, spans.candidates, word)
    packed, signs = spans.candidates[chosen, 0], spans.candidates[chosen, 1]
    done, to = place + np.int64(row >> np.uint64(SIZE_SHIFT)), base + bounds[place]
    start = to
    for _ in range(LONGEST):
        text = np.int64(signs & np.uint64(_TEXT))
        _store_word(out.data, np.uint64(to), tables.texts[text, 0])
        to += np.int64(tables.texts[text, 1] & np.uint64(0xFF))
        signs >>= np.uint64(TEXT_BITS)
    _copy(out.data, to, data, bounds[done], bounds[n])
    singles = len(tables.texts)
    old = singles + np.int64((row >> np.uint64(SOURCE_SHIFT)) & np.uint64(_SPAN_TEXT))
    new = singles + np.int64(packed & np.uint64(_SPAN_TEXT))
    _note(out, edit, place, done, old, new, struck, packed >> np.uint64(SPAN_TEXT_BITS))
    cost = np.int64(packed >> np.uint64(_COST)) & ((1 << COST_BITS) - 1)
    return base + (to - start) - (bounds[done] - bounds[place]), cost


@inlined
def copy_whole(out, base, data, start, stop):
    """Copy the whole target, before any edit."""
    _copy(out.data, base, data, start, stop)


@inlined
def _note(out, edit, start, end, old, new, struck, kind):
    out.start[edit] = start
    out.end[edit] = end
    out.old[edit] = old
    out.new[edit] = new
    out.struck[edit] = struck
    out.kind[edit] = np.int8(kind & np.uint64(_KIND))


@inlined
def candidate_of(tables, o, slot, word):
    """Return the text and the kind (packed) of a replacement, by Walker's alias method."""
    scaled = (word >> np.uint64(32)) * np.uint64(tables.rows[o, slot, 1])
    packed = tables.candidates[np.uint64(tables.rows[o, slot, 0]) + (scaled >> np.uint64(32))]
    fraction = np.uint32(word) >> np.uint32(32 - KEEP_BITS)
    keep = np.uint32(packed >> np.uint64(2 * (TEXT_BITS + KIND_BITS)))
    if fraction >= keep:
        packed >>= np.uint64(TEXT_BITS + KIND_BITS)
    return packed


@inlined
def span_candidate_of(row, candidates, word):
    """Return the candidate that replaces a span, by Walker's alias method."""
    first = row & np.uint64((1 << COUNT_SHIFT) - 1)
    count = (row >> np.uint64(COUNT_SHIFT)) & np.uint64((1 << (SOURCE_SHIFT - COUNT_SHIFT)) - 1)
    chosen = first + (((word >> np.uint64(32)) * count) >> np.uint64(32))
    packed = candidates[chosen, 0]
    fraction = np.uint32(word) >> np.uint32(32 - KEEP_BITS)
    if fraction >= np.uint32(packed >> np.uint64(64 - KEEP_BITS)):
        chosen = first + ((packed >> np.uint64(_ALIAS)) & np.uint64((1 << ALIAS_BITS) - 1))
    return chosen


@inlined
def _copy(out, at, data, start, stop):
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
        place = builder.gep(array.data, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(out, to, word), generate
