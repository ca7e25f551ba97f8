"""The choice of one edit among several proposals, by how well each fits its sentence.

A factor is how many times as often people make an error as the operator draws it. Two kinds of
factors act before the proposals. Those of the right and the wrong character multiply the operator's
weights (`perturbation.context`). Those of the place, and of the two pairs of neighbours that an
edit there breaks, multiply the probability of the place.

A proposal is one drawn place with one drawn replacement. The kernel takes one of the proposals of
an edit, each with a probability in proportion to the factors of the two pairs of neighbours that
it makes.
"""

from __future__ import annotations

import math

import numpy as np

from cecdata.common.kernels.jit import called, inlined
from cecdata.perturbation.kernel.draws import CHOICE, PROPOSAL, draw, unit
from cecdata.perturbation.kernel.layout import (
    CODE_BITS,
    EDGE,
    LONGEST,
    PAIR_CODE_BITS,
    PAIR_FACTOR,
    SIZE_SHIFT,
    SLOT_BITS,
    TEXT_BITS,
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
    slots = np.uint32(context.slots)
    if left != 0 and right != 0 and left < slots and right < slots:
        key = np.uint32(left) << np.uint32(SLOT_BITS) | np.uint32(right)
        at = np.uint32(key * np.uint32(PAIR_FACTOR)) >> np.uint32(32 - PAIR_CODE_BITS)
        code = np.uint32(0)
        while context.pairs[at]:
            held = context.pairs[at]
            if held >> np.uint32(CODE_BITS) == key:
                code = held & np.uint32(_CODE)
                break
            at = (at + np.uint32(1)) & np.uint32((1 << PAIR_CODE_BITS) - 1)
    return code


@inlined
def read_bonds(n, context, room):
    """Write the code of each place's character and the one before it, and each place's factor."""
    bonds, factors = room.bonds, context.factors
    bonds[0] = EDGE
    for i in range(1, n):
        bonds[i] = pair_code(context, room.slots[i - 1], room.slots[i])
    bonds[n] = EDGE
    room.added[0] = 0
    for i in range(n):
        start, end = min(i, _FURTHEST), min(n - 1 - i, _FURTHEST)
        room.base[i] = factors[UNMADE, bonds[i], bonds[i + 1]] * factors[WHERE, start, end]


@inlined
def _made(context, room, i, before, new, after):
    """Return the factor of the pairs that slot `new` makes at place i, between two slots."""
    factors = context.factors
    left, right = pair_code(context, before, new), pair_code(context, new, after)
    factor = factors[MADE, left, right] * factors[LEFT, room.bonds[i], left]
    return np.float64(factor * factors[RIGHT, room.bonds[i + 1], right])


@inlined
def _character(tables, room, o, place, word):
    """Return the factor of a replacement of one character; 1 where it is none of the standard."""
    context, old = tables.context, room.slots[place]
    new = np.uint32(candidate_of(tables, o, old, word) & np.uint64(_TEXT))
    slots, factor = np.uint32(context.slots), 1.0
    if new != 0 and new < slots and old != 0 and old < slots:
        before = room.slots[place - 1] if place > 0 else np.uint32(0)
        factor = _made(context, room, place, before, new, room.slots[place + 1])
    return factor


@inlined
def _span(tables, room, o, place, word):
    """Return the mean factor of a span's changed characters, see `rooted`.

    1 where the replacement has another length.
    """
    spans, context = tables.spans, tables.context
    s = np.int64(spans.row[o])
    row = spans.rows[np.int64(room.spans[s, place]), s]
    signs = spans.candidates[span_candidate_of(row, spans.candidates, word), 1]
    size, length = np.int64(row >> np.uint64(SIZE_SHIFT)), 0
    slots, factor, changed = np.uint32(context.slots), 1.0, 0
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
            factor *= room.base[place + j] * _made(context, room, place + j, before, new, after)
            changed += 1
        before = new
    return rooted(factor, changed) if length == size else 1.0


@inlined
def rooted(factor, changed):
    """Return the square root for two characters, the fourth root for more: roots that are exact."""
    if changed >= 2:
        factor = math.sqrt(factor)
    if changed >= 3:
        factor = math.sqrt(factor)
    return factor


@inlined
def _add_places(tables, room, n, o):
    """Write into `room.worth` the cumulative sum of the places' factors for an operator."""
    s, context = np.int64(tables.spans.row[o]), tables.context
    worth, total, bit = room.worth[o], np.float32(0), np.uint16(1 << o)
    if s >= 0:
        for i in range(np.uint64(n)):
            if room.mask[i] & bit:
                total += context.of_span[room.spans[s, i], s]
            worth[i] = total
    else:
        own = context.of_slot[o]
        for i in range(np.uint64(n)):
            fits = np.float32((room.mask[i] & bit) != 0)
            total += own[room.slots[i]] * room.base[i] * fits
            worth[i] = total


@inlined
def _place_at(worth, n, sum_):
    """Return the first place where the cumulative sum exceeds `sum_`."""
    count = np.int32(0)
    for i in range(np.uint64(n)):  # without branches: the compiler vectorises it
        count += np.int32(worth[i] <= sum_)
    return np.int64(count)


@inlined
def _is_free(chosen, count, k, at):
    free = True
    for j in range(count):
        free &= (j == k) | (chosen[j] != at)
    return free


@called
def suggest(tables, draws, room, n, o, mixed, count, key):
    """Redraw the `count` edits in `room.chosen` and `room.words`, each as one of several proposals.

    Places are drawn in strata, a proposal in each. In a mixed pair they stay.
    """
    chosen, words = room.chosen, room.words
    proposals = draws.proposals
    for k in range(count):
        struck = room.strikes[k] if mixed else o
        if not tables.context.weighed[struck]:
            continue
        worth, sum_ = room.worth[struck], np.float32(0)
        if not mixed:
            if (room.added[0] >> np.int64(struck)) & 1 == 0:
                _add_places(tables, room, n, struck)
                room.added[0] |= np.int64(1) << np.int64(struck)
            sum_ = worth[n - 1]
        place, word, total = chosen[k], words[k], 0.0
        at = place
        shift = unit(draw(key, PROPOSAL, 2 * proposals * k))
        for t in range(proposals):
            index = 2 * (k * proposals + t) + 1
            if not mixed:
                at = _place_at(worth, n, np.float32(sum_ * ((t + shift) / proposals)))
                # none is left where the product was rounded up to the sum
                if at >= n or not _is_free(chosen, count, k, at):
                    continue
            own = draw(key, PROPOSAL, index)
            if tables.spans.row[struck] >= 0:
                weight = _span(tables, room, struck, at, own)
            else:
                weight = _character(tables, room, struck, at, own)
            total += weight
            # no branch: which one it is cannot be predicted
            taken = unit(draw(key, CHOICE, index)) * total < weight
            place += (at - place) * np.int64(taken)
            word ^= (word ^ own) * np.uint64(taken)
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
