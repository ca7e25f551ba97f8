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
from cecdata.perturbation.kernel import layout
from cecdata.perturbation.kernel.edit import draw_candidate, draw_span_candidate, read_points
from cecdata.perturbation.kernel.layout import LONGEST, REACH, TEXT_BITS, read_bits
from cecdata.perturbation.kernel.positions import CHOICE, PROPOSAL, draw, draw_below, draw_fraction

_FAR = 1 << 28  # above every cost
_NONE = -1  # in place of a word: the beginning or the end of a run
_TRIES = 8  # draws of a position, after which the first position of the edit stands
_DRAWS = 1 + _TRIES  # for each proposal: of its replacement, then of its position


@inlined
def _is_han(point):
    """Return whether a code point is in the block that the model's first nodes cover."""
    return np.uint32(point - np.uint32(layout.FIRST_HAN)) < np.uint32(layout.HAN)


@inlined
def _descend(model, node, point):
    """Return the node of the trie after this Han character, or -1; node 0 is the root."""
    if node == 0:  # most walks begin and end here: no hashing
        return np.int64(model.first[np.uint32(point - np.uint32(layout.FIRST_HAN))])
    return np.int64(next_node(model.trie, node, point))


@inlined
def _measure_cost_after(model, word, before):
    """Return the cost of a word after the word `before`, or by itself where that is -1."""
    slot = np.int64(-1)
    if before >= 0:
        slot = find_bigram(model.bigrams, model.bigram_marks, model.bigram_shift, before, word)
    if slot >= 0:
        return np.int64((model.bigrams[slot] >> BYTE) & LOWER)  # of a bigram's fields, its log P
    return np.int64(model.cost[word]) + (np.int64(model.backoff[before]) if before >= 0 else 0)


@inlined
def _find_word(model, node, size):
    """Return the word of `size` characters at a node, or -1; 0 for an unknown character."""
    word = model.trie.word[node] if node >= 0 else _NONE
    return 0 if word < 0 and size == 1 else word


@inlined
def read_words(length, model, scratch):
    """Fill `ahead`, `word_to`, `behind`, `word_from` and `arcs` of `scratch`, empty `unchanged`."""
    for i in range(length + 1):
        scratch.ahead[i], scratch.behind[i], scratch.unchanged[i] = _FAR, _FAR, _NONE
    _read_words_ahead(length, model, scratch)
    _read_words_behind(length, model, scratch)


@inlined
def _read_words_ahead(length, model, scratch):
    """Fill `arcs`, and the costs and last words of what stands before each position."""
    points, ahead, word_to = scratch.points, scratch.ahead, scratch.word_to
    ahead[0], word_to[0] = 0, _NONE
    for i in range(length):
        if not _is_han(points[i]):
            if ahead[i] < ahead[i + 1]:
                ahead[i + 1], word_to[i + 1] = ahead[i], _NONE
            continue
        scratch.arcs[i] = _NONE
        node = 0
        for end in range(i + 1, min(i + REACH, length) + 1):
            if node < 0 or not _is_han(points[end - 1]):
                break
            node = _descend(model, node, points[end - 1])
            word = _find_word(model, node, end - i)
            scratch.arcs[i, end - i - 1] = word
            if word >= 0 and ahead[i] + model.cost[word] < ahead[end]:
                ahead[end], word_to[end] = ahead[i] + model.cost[word], word


@inlined
def _read_words_behind(length, model, scratch):
    """Fill `behind`, the least cost of words from each position to the end, and `word_from`, the
    first of these words, by `arcs`. `read_words` has set `behind` to `_FAR`.
    """
    behind, word_from = scratch.behind, scratch.word_from
    behind[length], word_from[length] = 0, _NONE
    for i in range(length - 1, -1, -1):
        if not _is_han(scratch.points[i]):
            behind[i], word_from[i] = behind[i + 1], _NONE
            continue
        for end in range(i + 1, min(i + REACH, length) + 1):
            word = scratch.arcs[i, end - i - 1]
            if word >= 0 and behind[end] + model.cost[word] < behind[i]:
                behind[i], word_from[i] = behind[end] + model.cost[word], word


@called
def measure_cost_with(model, scratch, length, start, end, size):
    """Return the cost of the sentence with `scratch.written[:size]` in place of [start, end).

    Of its words, those before the edit are in `ahead` and those behind it in `behind`. The words
    that touch it are looked up: `reached` and `reached_by` have the least cost up to each position
    from `low` on, and the last word. Positions are those of the changed sentence.
    """
    low, stop, shift = max(0, start - REACH + 1), start + size, size - (end - start)
    reached, reached_by = scratch.reached, scratch.reached_by
    for at in range(low, stop + REACH):
        if at <= start:
            reached[at - low], reached_by[at - low] = scratch.ahead[at], scratch.word_to[at]
        else:
            reached[at - low] = _FAR
    best = _FAR
    for begin in range(low, min(stop + REACH, length + shift + 1)):
        cost, before = np.int64(reached[begin - low]), reached_by[begin - low]
        if cost >= best:
            continue
        if begin >= stop:
            best = min(best, cost + _measure_cost_behind(model, scratch, begin - shift, before))
            continue
        node = 0
        for at in range(begin, min(begin + REACH, length + shift)):
            after = at + 1 - low
            point = _read_changed_point(scratch, at, start, stop, shift)
            if not _is_han(point):
                if at == begin and cost < reached[after]:
                    reached[after], reached_by[after] = cost, _NONE
                break
            node = _descend(model, node, point)
            word = _find_word(model, node, at + 1 - begin)
            if word >= 0 and at >= start:  # words that end before the edit are part of `ahead`
                total = cost + _measure_cost_after(model, word, before)
                if total < reached[after]:
                    reached[after], reached_by[after] = total, word
            if node < 0:
                break
    return best


@inlined
def _measure_cost_behind(model, scratch, position, before):
    """Return the cost of the words from a position on, of which the first follows `before`."""
    cost, word = np.int64(scratch.behind[position]), scratch.word_from[position]
    if word >= 0 and before >= 0:
        cost += _measure_cost_after(model, word, before) - np.int64(model.cost[word])
    return cost


@inlined
def _read_changed_point(scratch, at, start, stop, shift):
    """Return the code point at a position of a sentence whose [start, stop) are `written`."""
    if at < start:
        return scratch.points[at]
    if at < stop:
        return scratch.written[at - start]
    return scratch.points[at - shift]


@inlined
def _measure_cost_unchanged(model, scratch, length, start, end):
    """Return the cost of the sentence as it is, by the words that an edit of [start, end) touches.

    That of one character is kept in `scratch.unchanged`.
    """
    if end == start + 1 and scratch.unchanged[start] >= 0:
        return np.int64(scratch.unchanged[start])
    for i in range(start, end):
        scratch.written[i - start] = scratch.points[i]
    cost = measure_cost_with(model, scratch, length, start, end, end - start)
    if end == start + 1:
        scratch.unchanged[start] = cost
    return cost


@inlined
def _write_proposal(tables, scratch, operator, position, random):
    """Write the characters that an operator's draw puts at a position into `scratch.written`.

    Return their number, and where the characters end in whose place they stand.
    """
    column = np.int64(tables.spans.column[operator])
    if column >= 0:
        return _write_span(tables, scratch, column, position, random)
    inserts = np.int64(tables.inserts[operator])
    slot = np.uint32(0) if inserts else scratch.slots[position]
    text = read_bits(draw_candidate(tables, operator, slot, random), 0, TEXT_BITS)
    first, second = read_points(tables.texts[np.int64(text), 1])
    scratch.written[0], scratch.written[1] = first, second
    return np.int64(first != 0) + np.int64(second != 0), position + 1 - inserts


@inlined
def _write_span(tables, scratch, column, position, random):
    """Do so for an operator that rewrites spans; `column` is its column of `SpanTables.rows`."""
    span = tables.spans.rows[np.int64(scratch.spans[column, position]), column]
    chosen = draw_span_candidate(span, tables.spans.candidates, random)
    characters, size = tables.spans.candidates[chosen, 1], 0
    for i in range(LONGEST):
        text = np.int64(read_bits(characters, i * TEXT_BITS, TEXT_BITS))
        scratch.written[size] = read_points(tables.texts[text, 1])[0]
        size += np.int64(text != 0)
    return size, position + np.int64(span >> np.uint64(layout.SIZE_SHIFT))


@inlined
def redraw_edits(tables, draws, scratch, length, pair_operator, count, key):
    """Redraw the `count` edits in `scratch.chosen` and `randoms`, each as one of its proposals.

    The first proposal is at the position of the edit. `pair_operator` is as in `Output.operator`;
    each edit of a mixed pair has its own operator, and keeps its position.
    """
    proposals, mixed = draws.proposals, pair_operator == len(draws.priors)
    for k in range(count):
        operator = scratch.operators[k] if mixed else pair_operator
        for t in range(proposals):
            at, number = scratch.chosen[k], k * proposals + t
            if t > 0 and not mixed:
                at = _propose_position(scratch, length, operator, count, k, number, key)
            random = draw(key, PROPOSAL, number * _DRAWS)
            scratch.positions[t], scratch.drawn[t] = at, random
            scratch.weights[t] = _weigh_proposal(tables, scratch, length, operator, at, random)
        taken = _draw_index(scratch.weights, proposals, draw_fraction(key, CHOICE, k))
        scratch.chosen[k], scratch.randoms[k] = scratch.positions[taken], scratch.drawn[taken]
    _sort_edits(scratch, count)


@inlined
def _weigh_proposal(tables, scratch, length, operator, position, random):
    """Return the weight of a proposal, which grows as it lowers the cost of the sentence."""
    model = tables.model
    size, end = _write_proposal(tables, scratch, operator, position, random)
    changed = measure_cost_with(model, scratch, length, position, end, size)
    gain = _measure_cost_unchanged(model, scratch, length, position, end) - changed
    no_gain = len(model.chance) // 2  # the place of a gain of 0
    return model.chance[min(max(no_gain + gain, 0), len(model.chance) - 1)]


@inlined
def _propose_position(scratch, length, operator, count, edit, number, key):
    """Return a position that the operator may edit and no other edit has, by at most 8 draws.

    `edit` is the number of the edit among `count`, `number` that of the proposal in the pair.
    """
    bit, proposed = np.uint16(1 << operator), scratch.chosen[edit]
    for tried in range(_TRIES):
        at = draw_below(draw(key, PROPOSAL, number * _DRAWS + 1 + tried), length + 1)
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
    total, sum_up_to, taken = 0.0, 0.0, 0
    for t in range(count):
        total += weights[t]
    for t in range(count):
        sum_up_to += weights[t]
        taken += sum_up_to <= fraction * total  # no branch: it could not be predicted
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
