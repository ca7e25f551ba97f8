"""The choice of one edit among several proposals, by how well each fits its sentence.

A factor is how many times as often people make an error as the operator draws it. Two kinds of
factors act before the proposals. Those of the right and the wrong character multiply the operator's
weights (`perturbation.context`). Those of the position, and of the two pairs of neighbours that an
edit there breaks, multiply the probability of the position.

A proposal is one drawn position with one drawn replacement. The kernel takes one of an edit's
proposals, each with a probability in proportion to the factors of the two pairs of neighbours that
it makes.
"""

import math

import numpy as np

from cecdata.common.kernels.jit import inlined
from cecdata.perturbation.kernel.edit import candidate_of, span_candidate_of
from cecdata.perturbation.kernel.layout import EDGE, LONGEST, SIZE_SHIFT, TEXT_BITS
from cecdata.perturbation.kernel.positions import CHOICE, PROPOSAL, draw, unit

# The first axis of `Context.factors`. The other two axes are, in turn: the codes of the pairs that
# an edit makes (left, right); of the pairs that it breaks (left, right); of the pair broken and the
# pair made on the left; the same on the right; the classes of frequency (old, new); the distances
# from both ends; the code of `confusions` and the old class; the agreement in sound (0..2) and the
# new class; the number of changed characters and 0.
MADE, UNMADE, LEFT, RIGHT, FREQUENCY, WHERE, CONFUSION, SOUND, SIZE = range(9)
_FURTHEST = 15
_TEXT = (1 << TEXT_BITS) - 1


@inlined
def _standard(context, text):
    """Return the slot of a text that is a standard character, else 0."""
    slot = np.uint32(text)
    return np.uint16(slot * np.uint32(slot < np.uint32(len(context.codes))))


@inlined
def pair_code(context, left, right):
    """Return the code of a pair of slots: 0 if it never occurs, EDGE if one of the slots is 0."""
    both = context.codes[np.uint32(left), np.uint32(right >> 1)]
    return (both >> np.uint32((right & 1) << 2)) & np.uint32(EDGE)


@inlined
def read_bonds(n, context, scratch):
    """Write each position's standard slot, the code of its pair with the one before, its factor."""
    standard, bonds, base, size = scratch.standard, scratch.bonds, scratch.base, np.uint64(n)
    for i in range(size):
        standard[i] = _standard(context, scratch.slots[i])
    standard[size], bonds[0] = 0, EDGE
    for i in range(size):
        bonds[i + np.uint64(1)] = pair_code(context, standard[i], standard[i + np.uint64(1)])
    unmade, where = context.factors[UNMADE], context.factors[WHERE]
    for i in range(size):
        base[i] = unmade[bonds[i], bonds[i + np.uint64(1)]]
    scratch.added[0] = 0
    furthest, last = np.uint64(_FURTHEST), size - np.uint64(1)
    for i in range(size):
        base[i] *= where[min(i, furthest), min(last - i, furthest)]


@inlined
def _made(context, scratch, i, before, new, after):
    """Return the factor of the pairs that slot `new` makes at position i, between two slots."""
    factors = context.factors
    left, right = pair_code(context, before, new), pair_code(context, new, after)
    factor = factors[MADE, left, right] * factors[LEFT, scratch.bonds[i], left]
    return np.float64(factor * factors[RIGHT, scratch.bonds[i + 1], right])


@inlined
def _character(tables, scratch, position, new):
    """Return the factor of writing slot `new` at a position; 1 if it or the slot there is 0."""
    before = scratch.standard[position - 1] if position > 0 else np.uint16(0)
    factor = _made(tables.context, scratch, position, before, new, scratch.standard[position + 1])
    return factor if new != 0 and scratch.standard[position] != 0 else 1.0


@inlined
def _span(tables, scratch, o, position, word):
    """Return the factor of a span: the product over its changed characters, after `rooted`.

    The factor is 1 where the replacement has another length.
    """
    spans, context = tables.spans, tables.context
    s = np.int64(spans.row[o])
    row = spans.rows[np.int64(scratch.spans[s, position]), s]
    signs = spans.candidates[span_candidate_of(row, spans.candidates, word), 1]
    size, length = np.int64(row >> np.uint64(SIZE_SHIFT)), 0
    factor, changed = 1.0, 0
    before = scratch.standard[position - 1] if position > 0 else np.uint16(0)
    for j in range(LONGEST):
        text = signs & np.uint64(_TEXT)
        signs >>= np.uint64(TEXT_BITS)
        if text == 0:
            continue
        length += 1
        new = _standard(context, text)
        old = scratch.standard[position + j] if j < size else np.uint16(0)
        after = _standard(context, signs & np.uint64(_TEXT))
        if signs & np.uint64(_TEXT) == 0:
            after = scratch.standard[position + size]
        if new != old and old != 0 and new != 0:
            factor *= scratch.base[position + j] * _made(
                context, scratch, position + j, before, new, after
            )
            changed += 1
        before = new
    return rooted(factor, changed) if length == size else 1.0


@inlined
def rooted(factor, changed):
    """Return a factor's square root for two characters, its fourth root for more.

    IEEE 754 rounds square roots alike on all processors.
    """
    if changed >= 2:
        factor = math.sqrt(factor)
    if changed >= 3:
        factor = math.sqrt(factor)
    return factor


@inlined
def _add_positions(tables, scratch, n, o):
    """Write into `scratch.worth` the cumulative sum of the positions' factors for an operator."""
    # Bind the arrays before the branch: bound inside it, they make the loops three times slower.
    s, size, bit = np.int64(tables.spans.row[o]), np.uint64(n), np.uint16(1 << o)
    mask, worth, slots, base = scratch.mask, scratch.worth[o], scratch.slots, scratch.base
    own, of_span, spans = (
        tables.context.of_slot[o],
        tables.context.of_span,
        scratch.spans[max(s, 0)],
    )
    if s >= 0:
        for i in range(size):
            fits = np.uint32((mask[i] & bit) != 0)
            worth[i] = of_span[np.uint32(spans[i]) * fits, s] * np.float32(fits)
    else:
        for i in range(size):
            worth[i] = own[slots[i]] * base[i] * np.float32((mask[i] & bit) != 0)
    total = np.float32(0)
    for i in range(size):
        total += worth[i]
        worth[i] = total


@inlined
def _place_at(worth, n, sum_):
    """Return the first position where the cumulative sum exceeds `sum_`."""
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


@inlined
def suggest(tables, draws, scratch, n, o, mixed, count, key):
    """Redraw the `count` edits in `scratch.chosen` and `words`, each as one of its proposals.

    Positions are drawn in strata, one proposal from each. A mixed pair keeps its positions.
    """
    for k in range(count):
        operator = scratch.operators[k] if mixed else o
        if not tables.context.weighed[operator]:
            continue
        if mixed:
            for t in range(draws.proposals):
                scratch.positions[t], scratch.weights[t] = scratch.chosen[k], 1.0
        else:
            _propose_positions(tables, draws, scratch, n, operator, count, k, key)
        _weigh(tables, draws, scratch, operator, k, key)
        taken = _take(scratch.weights, draws.proposals, unit(draw(key, CHOICE, k)))
        if taken >= 0:
            scratch.chosen[k], scratch.words[k] = scratch.positions[taken], scratch.drawn[taken]
    _sort(scratch, count)


@inlined
def _propose_positions(tables, draws, scratch, n, operator, count, k, key):
    """Write the position of each proposal, and its weight: 0 where another edit has it, else 1."""
    if (scratch.added[0] >> np.int64(operator)) & 1 == 0:
        _add_positions(tables, scratch, n, operator)
        scratch.added[0] |= np.int64(1) << np.int64(operator)
    worth, proposals = scratch.worth[operator], draws.proposals
    sum_ = worth[n - 1]
    shift = unit(draw(key, PROPOSAL, 2 * proposals * k))
    for t in range(proposals):
        at = _place_at(worth, n, np.float32(sum_ * ((t + shift) / proposals)))
        # there is no such position where the product was rounded up to the sum
        fits = (at < n) & _is_free(scratch.chosen, count, k, at)
        scratch.positions[t] = at if fits else scratch.chosen[k]
        scratch.weights[t] = np.float64(fits)


@inlined
def _weigh(tables, draws, scratch, operator, k, key):
    """Draw a replacement at the position of each proposal, and multiply its weight by the factor.

    Each step runs over all proposals, so that the processor waits for their tables at once.
    """
    proposals = draws.proposals
    for t in range(proposals):
        scratch.drawn[t] = draw(key, PROPOSAL, 2 * (k * proposals + t) + 1)
    if tables.spans.row[operator] >= 0:
        for t in range(proposals):
            scratch.weights[t] *= _span(
                tables, scratch, operator, scratch.positions[t], scratch.drawn[t]
            )
    else:
        for t in range(proposals):
            packed = candidate_of(
                tables, operator, scratch.slots[scratch.positions[t]], scratch.drawn[t]
            )
            scratch.written[t] = _standard(tables.context, packed & np.uint64(_TEXT))
        for t in range(proposals):
            scratch.weights[t] *= _character(
                tables, scratch, scratch.positions[t], scratch.written[t]
            )


@inlined
def _take(weights, count, u):
    """Return the index of a weight, drawn in proportion to the weights; -1 if all are 0."""
    total, sum_, taken = 0.0, 0.0, 0
    for t in range(count):
        total += weights[t]
    for t in range(count):
        sum_ += weights[t]
        taken += sum_ <= u * total  # no branch: it could not be predicted
    return taken if taken < count else -1


@inlined
def _sort(scratch, count):
    for k in range(1, count):
        position, word, operator, at = scratch.chosen[k], scratch.words[k], scratch.operators[k], k
        while at > 0 and scratch.chosen[at - 1] > position:
            scratch.chosen[at] = scratch.chosen[at - 1]
            scratch.words[at] = scratch.words[at - 1]
            scratch.operators[at] = scratch.operators[at - 1]
            at -= 1
        scratch.chosen[at], scratch.words[at], scratch.operators[at] = position, word, operator
