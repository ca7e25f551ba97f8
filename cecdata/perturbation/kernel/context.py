"""Which of several drawn edits the sentence suggests, by products of factors.

Each draw of a place and a replacement is a proposal. One of them is taken, each with a chance in
proportion to its factor: how real errors differ from proposals in the pairs of characters that they
unmake and make, in frequency and in place.
"""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import called, inlined
from cecdata.perturbation.kernel.draws import CHOICE, PROPOSAL, below, draw, unit
from cecdata.perturbation.kernel.layout import (
    CODE_BITS,
    CONFUSION_BITS,
    EDGE,
    LONGEST,
    PAIR_CODE_BITS,
    PAIR_FACTOR,
    SIZE_SHIFT,
    SLOT_BITS,
    TEXT_BITS,
    TONE_BITS,
)
from cecdata.perturbation.kernel.strike import candidate_of, span_candidate_of

# What `Context.factors` are by: codes of pairs that are made (left, right), that are unmade, that
# are unmade and made on the left, on the right; classes of frequency; places
MADE, UNMADE, LEFT, RIGHT, FREQUENCY, WHERE, CONFUSION, SOUND, SIZE = range(9)
_FURTHEST = 15
_TEXT, _CODE = (1 << TEXT_BITS) - 1, (1 << CODE_BITS) - 1


@inlined
def pair_code(context, left, right):
    """Return the code of two neighbouring slots: 0 where they never occur, EDGE beside a sign."""
    code = np.uint32(EDGE)
    slots = np.uint32(len(context.classes))
    if left != 0 and right != 0 and left < slots and right < slots:
        code = _code(context.pairs, np.uint32(PAIR_CODE_BITS), left, right)
    return code


@inlined
def _code(table, bits, left, right):
    """Return the code of a pair of slots in a hash table of 2**bits entries; 0 if it is absent."""
    key = np.uint32(left) << np.uint32(SLOT_BITS) | np.uint32(right)
    mask = np.uint32(len(table) - 1)
    at = np.uint32(key * np.uint32(PAIR_FACTOR)) >> (np.uint32(32) - bits)
    code = np.uint32(0)
    while table[at]:
        held = table[at]
        if held >> np.uint32(CODE_BITS) == key:
            code = held & np.uint32(_CODE)
            break
        at = np.uint32(at + np.uint32(1)) & mask
    return code


@inlined
def read_bonds(n, context, room):
    """Write the code of each place's character and the one before it into `room.bonds`."""
    room.bonds[0] = EDGE
    for i in range(1, n):
        room.bonds[i] = pair_code(context, room.slots[i - 1], room.slots[i])
    room.bonds[n] = EDGE


@inlined
def _factor(context, room, n, i, before, old, new, after):
    """Return the factor of writing slot `new` for `old` at place i, between two slots."""
    factors = context.factors
    left, right = pair_code(context, before, new), pair_code(context, new, after)
    was_left, was_right = room.bonds[i], room.bonds[i + 1]
    start, end = min(i, _FURTHEST), min(n - 1 - i, _FURTHEST)
    factor = factors[MADE, left, right] * factors[UNMADE, was_left, was_right]
    factor *= factors[LEFT, was_left, left] * factors[RIGHT, was_right, right]
    factor *= factors[FREQUENCY, context.classes[old], context.classes[new]]
    alike = _code(context.confusions, np.uint32(CONFUSION_BITS), old, new)
    factor *= factors[CONFUSION, alike, context.classes[old]]
    one, other = context.sounds[old], context.sounds[new]
    same = np.int64(one == other) + np.int64(one >> TONE_BITS == other >> TONE_BITS)
    factor *= factors[SOUND, same, context.classes[new]]
    return np.float64(factor * factors[WHERE, start, end])


@inlined
def _character(tables, room, n, o, place, word):
    """Return the factor of a replacement of one character; 1 where it is none of the standard."""
    context, old = tables.context, room.slots[place]
    packed = candidate_of(tables, o, old, word)
    new = np.uint32(packed & np.uint64(_TEXT))
    slots, factor = np.uint32(len(context.classes)), 1.0
    if new != 0 and new < slots and old != 0 and old < slots:
        before = room.slots[place - 1] if place > 0 else np.uint32(0)
        factor = _factor(context, room, n, place, before, old, new, room.slots[place + 1])
        factor *= context.factors[SIZE, 1, 0]
    return factor


@inlined
def _span(tables, room, n, o, place, word):
    """Return the geometric mean of the factors of a span's changed characters.

    1 where the replacement has another length.
    """
    spans, context = tables.spans, tables.context
    s = np.int64(spans.row[o])
    row = spans.rows[np.int64(room.spans[s, place]), s]
    signs = spans.candidates[span_candidate_of(row, spans.candidates, word), 1]
    size, length = np.int64(row >> np.uint64(SIZE_SHIFT)), 0
    slots, factor, changed = np.uint32(len(context.classes)), 1.0, 0
    before = room.slots[place - 1] if place > 0 else np.uint32(0)
    for j in range(LONGEST):
        new = np.uint32(signs & np.uint64(_TEXT))
        signs >>= np.uint64(TEXT_BITS)
        if new == 0:
            continue
        length += 1
        old = room.slots[place + j] if j < size else np.uint32(0)
        after = np.uint32(signs & np.uint64(_TEXT))
        if after == 0:
            after = room.slots[place + size]
        if new != old and old != 0 and old < slots and new < slots:
            factor *= _factor(context, room, n, place + j, before, old, new, after)
            changed += 1
        before = new
    if length != size or changed == 0:
        return 1.0
    return factor ** (1.0 / changed) * context.factors[SIZE, changed, 0]


@inlined
def _weigh(tables, room, n, o, place, word):
    if tables.spans.row[o] >= 0:
        return _span(tables, room, n, o, place, word)
    return _character(tables, room, n, o, place, word)


@called
def suggest(tables, draws, room, n, o, mixed, count, key):
    """Redraw the `count` edits in `room.chosen` and `room.words`, each as one of several proposals.

    The first proposal of each is what was drawn already. In a mixed pair the places stay.
    """
    chosen, words = room.chosen, room.words
    proposals = draws.proposals
    for k in range(count):
        struck = room.strikes[k] if mixed else o
        if tables.inserts[struck]:
            continue
        place, word = chosen[k], words[k]
        total = _weigh(tables, room, n, struck, place, word)
        for t in range(1, proposals):
            index = k * proposals + t
            other = draw(key, PROPOSAL, 2 * index)
            at, fits = place if mixed else below(other, n + 1), True
            if not mixed:
                fits = (room.mask[at] >> np.uint16(struck)) & 1 != 0
                for j in range(count):
                    fits &= j == k or chosen[j] != at
            if fits:
                own = draw(key, PROPOSAL, 2 * index + 1)
                weight = _weigh(tables, room, n, struck, at, own)
                total += weight
                if unit(draw(key, CHOICE, index)) * total < weight:
                    place, word = at, own
        chosen[k], words[k] = place, word
    _sort(room, count)


@inlined
def _sort(room, count):
    for k in range(1, count):
        place, word, struck, at = room.chosen[k], room.words[k], room.strikes[k], k
        while at > 0 and room.chosen[at - 1] > place:
            room.chosen[at] = room.chosen[at - 1]
            room.words[at] = room.words[at - 1]
            room.strikes[at] = room.strikes[at - 1]
            at -= 1
        room.chosen[at], room.words[at], room.strikes[at] = place, word, struck
