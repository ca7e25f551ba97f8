"""The choice of one edit among several proposals, by a language model of words.

What a person leaves in a text is not drawn from a table: it is what an input method offered there,
or what the eye passed over. So an edit is one of several proposals, each a drawn position with a
drawn replacement, taken with a chance in proportion to

    (P(sentence with the edit) / P(sentence)) ** fluency.

P is that of the likeliest words of each run of Chinese characters: of the words that an edit
touches and of their neighbours by bigrams, of all others by unigrams, which are looked up once for
a sentence. Log-probabilities are whole steps of `cecdata.lm.kernels.STEP` nats and are called
costs; the chances of costs are a table, so all processors take the same proposal.
"""

import numpy as np

from cecdata.common.kernels import called, inlined
from cecdata.lm.kernels import BYTE, LOWER, find_bigram, next_node
from cecdata.perturbation.kernel.edit import draw_candidate, draw_span_candidate
from cecdata.perturbation.kernel.layout import FIRST_HAN, HAN, LONGEST, REACH, SIZE_SHIFT, TEXT_BITS
from cecdata.perturbation.kernel.positions import CHOICE, PROPOSAL, draw, draw_below, to_fraction

_FAR = 1 << 28  # above every cost
_NONE = -1  # in place of a word: the beginning or the end of a run
_TEXT = (1 << TEXT_BITS) - 1
_TRIES = 8  # draws of a position, after which the first position of the edit stands


@inlined
def _is_han(point):
    """Return whether a code point is in the block that the model's first nodes cover."""
    return np.uint32(point - np.uint32(FIRST_HAN)) < np.uint32(HAN)


@inlined
def _descend(model, node, point):
    """Return the node of the trie after this Han character, or -1; node 0 is the root."""
    if node == 0:  # most walks begin and end here: no hashing
        return np.int64(model.first[np.uint32(point - np.uint32(FIRST_HAN))])
    return np.int64(next_node(model, node, point))


@inlined
def _measure_cost_after(model, word, before):
    """Return the cost of a word after the word `before`, or by itself where that is -1."""
    slot = np.int64(-1)
    if before >= 0:
        slot = find_bigram(model.bigrams, model.bigram_marks, model.bigram_shift, before, word)
    if slot >= 0:
        return np.int64((model.bigrams[slot] >> BYTE) & LOWER)
    return np.int64(model.cost[word]) + (np.int64(model.backoff[before]) if before >= 0 else 0)


@inlined
def read_words(length, model, scratch):
    """Fill `ahead`, `word_to`, `behind`, `word_from` and `arcs` of `scratch`, empty `unchanged`."""
    points, ahead, behind, word_to, word_from = (
        scratch.points, scratch.ahead, scratch.behind, scratch.word_to, scratch.word_from,
    )  # fmt: skip
    for i in range(length + 1):
        ahead[i], behind[i], scratch.unchanged[i] = _FAR, _FAR, _NONE
    ahead[0], word_to[0], behind[length], word_from[length] = 0, _NONE, 0, _NONE
    for i in range(length):
        if not _is_han(points[i]):
            if ahead[i] < ahead[i + 1]:
                ahead[i + 1], word_to[i + 1] = ahead[i], _NONE
            continue
        node = 0
        for end in range(i + 1, min(i + REACH, length) + 1):
            node = _descend(model, node, points[end - 1]) if _is_han(points[end - 1]) else _NONE
            word = model.word[node] if node >= 0 else _NONE
            if word < 0 and end == i + 1:
                word = 0  # the unknown word stands for a character that is no word
            scratch.arcs[i, end - i - 1] = word
            if word >= 0 and ahead[i] + model.cost[word] < ahead[end]:
                ahead[end], word_to[end] = ahead[i] + model.cost[word], word
            if node < 0:
                for longer in range(end - i, REACH):
                    scratch.arcs[i, longer] = _NONE
                break
    for i in range(length - 1, -1, -1):
        if not _is_han(points[i]):
            behind[i], word_from[i] = behind[i + 1], _NONE
            continue
        for end in range(i + 1, min(i + REACH, length) + 1):
            word = scratch.arcs[i, end - i - 1]
            if word >= 0 and behind[end] + model.cost[word] < behind[i]:
                behind[i], word_from[i] = behind[end] + model.cost[word], word


@called
def measure_cost_with(model, scratch, length, start, end, size):
    """Return the cost of the sentence with `scratch.written[:size]` in place of [start, end)."""
    # p and q are positions in the changed sentence; `reached` and `last` begin with that of `low`
    low, stop, shift = max(0, start - REACH + 1), start + size, size - (end - start)
    reached, last = scratch.reached, scratch.reached_by
    for p in range(low, stop + REACH):
        if p <= start:
            reached[p - low], last[p - low] = scratch.ahead[p], scratch.word_to[p]
        else:
            reached[p - low] = _FAR
    best = _FAR
    for p in range(low, stop + REACH):
        if p > length + shift:
            break
        before, cost = last[p - low], np.int64(reached[p - low])
        if cost >= best:
            continue
        if p >= stop:
            rest = np.int64(scratch.behind[p - shift])
            word = scratch.word_from[p - shift]
            if word >= 0 and before >= 0:
                rest += _measure_cost_after(model, word, before) - np.int64(model.cost[word])
            best = min(best, cost + rest)
            continue
        node = 0
        for q in range(p, min(p + REACH, length + shift)):
            if q < start:
                point = scratch.points[q]
            elif q < stop:
                point = scratch.written[q - start]
            else:
                point = scratch.points[q - shift]
            if not _is_han(point):
                if q == p and cost < reached[p + 1 - low]:
                    reached[p + 1 - low], last[p + 1 - low] = cost, _NONE
                break
            node = _descend(model, node, point)
            word = model.word[node] if node >= 0 else _NONE
            if word < 0 and q == p:
                word = 0  # as in `read_words`
            # words that end at or before the edit are part of `ahead`
            if word >= 0 and (q + 1 > start or p == start):
                total = cost + _measure_cost_after(model, word, before)
                if total < reached[q + 1 - low]:
                    reached[q + 1 - low], last[q + 1 - low] = total, word
            if node < 0:
                break
    return best


@inlined
def _measure_cost_unchanged(model, scratch, length, start, end):
    """Return the cost of the sentence as it is, by the same words as `measure_cost_with`."""
    if end == start + 1 and scratch.unchanged[start] >= 0:
        return np.int64(scratch.unchanged[start])
    for i in range(start, end):
        scratch.written[i - start] = scratch.points[i]
    cost = measure_cost_with(model, scratch, length, start, end, end - start)
    if end == start + 1:
        scratch.unchanged[start] = cost
    return cost


@inlined
def _write_points(tables, scratch, operator, position, random):
    """Write the characters that an operator's draw puts at a position into `scratch.written`.

    Return their number, and where the characters end in whose place they stand.
    """
    column = np.int64(tables.spans.row[operator])
    if column >= 0:
        return _write_span(tables, scratch, column, position, random)
    size = 0
    inserts = np.int64(tables.inserts[operator])
    slot = np.uint32(0) if inserts else scratch.slots[position]
    text = np.int64(draw_candidate(tables, operator, slot, random) & np.uint64(_TEXT))
    facts = tables.texts[text, 1]  # see `Tables.texts`: bytes, first and second code point
    if facts & np.uint64(0xFF):
        scratch.written[0] = _read_first_point(tables, text)
        size = 1
    if facts >> np.uint64(32):
        scratch.written[1] = np.uint32(facts >> np.uint64(32))
        size = 2
    return size, position + 1 - inserts


@inlined
def _write_span(tables, scratch, column, position, random):
    """Write the characters of a drawn span, as `_write_points` does; `column` is the operator's."""
    row = tables.spans.rows[np.int64(scratch.spans[column, position]), column]
    texts = tables.spans.candidates[draw_span_candidate(row, tables.spans.candidates, random), 1]
    size = 0
    for _ in range(LONGEST):
        text = np.int64(texts & np.uint64(_TEXT))
        texts >>= np.uint64(TEXT_BITS)
        if text:
            scratch.written[size] = _read_first_point(tables, text)
            size += 1
    return size, position + np.int64(row >> np.uint64(SIZE_SHIFT))


@inlined
def _read_first_point(tables, text):
    """Return the first code point of a text, by its row in `Tables.texts`."""
    return np.uint32((tables.texts[text, 1] >> np.uint64(8)) & np.uint64(0xFFFFFF))


@inlined
def redraw_edits(tables, draws, scratch, length, pair_operator, count, key):
    """Redraw the `count` edits in `scratch.chosen` and `randoms`, each as one of its proposals.

    The more a proposal lowers the cost of the sentence, the likelier it is taken; the first one is
    at the position of the edit. `pair_operator` is as in `Output.operator`; each edit of a mixed
    pair has its own, and keeps its position.
    """
    model, proposals, mixed = tables.model, draws.proposals, pair_operator == len(draws.priors)
    for k in range(count):
        operator = scratch.operators[k] if mixed else pair_operator
        for t in range(proposals):
            at, number = scratch.chosen[k], k * proposals + t
            if t > 0 and not mixed:
                at = _propose_position(scratch, length, operator, count, k, number, key)
            random = draw(key, PROPOSAL, number * (_TRIES + 1))  # the others are for its position
            size, end = _write_points(tables, scratch, operator, at, random)
            changed = measure_cost_with(model, scratch, length, at, end, size)
            gain = _measure_cost_unchanged(model, scratch, length, at, end) - changed
            unchanged = len(model.chance) // 2  # the place of a gain of 0
            place = min(max(gain + unchanged, 0), len(model.chance) - 1)
            scratch.positions[t], scratch.drawn[t] = at, random
            scratch.weights[t] = model.chance[place]
        taken = _draw_index(scratch.weights, proposals, to_fraction(draw(key, CHOICE, k)))
        scratch.chosen[k], scratch.randoms[k] = scratch.positions[taken], scratch.drawn[taken]
    _sort_edits(scratch, count)


@inlined
def _propose_position(scratch, length, operator, count, edit, number, key):
    """Return a position that the operator may edit and no other edit has, by at most 8 draws."""
    bit, proposed = np.uint16(1 << operator), scratch.chosen[edit]
    for tried in range(_TRIES):
        index = number * (_TRIES + 1) + 1 + tried
        at = draw_below(draw(key, PROPOSAL, index), length + 1)
        free = (scratch.mask[at] & bit) != 0
        for j in range(count):
            free &= (j == edit) | (scratch.chosen[j] != at)
        if free:
            proposed = at
            break
    return proposed


@inlined
def _draw_index(weights, count, fraction):
    """Return the index of a weight, drawn in proportion to the weights."""
    total, sum_, taken = 0.0, 0.0, 0
    for t in range(count):
        total += weights[t]
    for t in range(count):
        sum_ += weights[t]
        taken += sum_ <= fraction * total  # no branch: it could not be predicted
    return min(taken, count - 1)


@inlined
def _sort_edits(scratch, count):
    """Sort the chosen positions, with their draws and operators, by insertion."""
    for k in range(1, count):
        position, random, operator = scratch.chosen[k], scratch.randoms[k], scratch.operators[k]
        at = k
        while at > 0 and scratch.chosen[at - 1] > position:
            scratch.chosen[at] = scratch.chosen[at - 1]
            scratch.randoms[at] = scratch.randoms[at - 1]
            scratch.operators[at] = scratch.operators[at - 1]
            at -= 1
        scratch.chosen[at], scratch.randoms[at], scratch.operators[at] = position, random, operator
