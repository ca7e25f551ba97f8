"""The word lattice of a clause, compiled by numba: what was written, and what may have been meant.

A clause is a run of Han characters. Its lattice has an edge for each word of the n-gram model that
can be read there, as written or with errors undone; an edge's price is λ · log P(observed | right)
minus θ for each error. Two passes:

1. Bigrams over the words as written give the best score before and after each place, so that the
   gain of a single edited edge is local. Edges that gain less than a margin go.
2. Trigrams over the edges that are left: forward and backward sums give the posterior probability
   of each edit, the best path says which edits belong together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from cecdata.ngram.kernels import STEP, child, find_bigram, find_trigram, place_of, shift_of

LONGEST_CLAUSE = 48  # characters; a longer run of Han is cut there
MOST_EDGES = 6000  # of a clause before the first pass
MOST_KEPT = 160  # edited edges after it
MOST_WORD = 8  # characters of the longest word
SECOND = 12  # candidates
_LOW = np.float32(-1e9)
_STEP = np.float32(STEP)
_12_BITS = np.uint64(4095)


class ChannelArrays(NamedTuple):
    """A channel for the kernel.

    `slot` [0x110000] is an observed character's row plus 1; row r is [bounds[r]:bounds[r + 1]] of
    `right` (code points) and `log_prob`. `span_keys` is a hash table of observed spans, whose rows
    lead to `span_words` (numbers of words) and `span_log_prob`. `word_points` [V, MOST_WORD] and
    `word_size` [V] are the texts of the n-gram model's words.
    """

    slot: NDArray[np.int32]
    bounds: NDArray[np.int64]
    right: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    span_keys: NDArray[np.uint64]
    span_rows: NDArray[np.int32]
    span_bounds: NDArray[np.int64]
    span_words: NDArray[np.int32]
    span_log_prob: NDArray[np.float32]
    word_points: NDArray[np.int32]
    word_size: NDArray[np.int32]


class Settings(NamedTuple):
    """The weights of the decoder; scores are natural logarithms."""

    channel: float = 1.0  # λ
    error: float = 3.0  # θ, for each error
    margin: float = 6.0  # an edited edge that loses more than this goes
    temperature: float = 2.0  # of the posteriors
    unknown: float = -8.0  # beside log P of the unknown word
    repeated: float = -3.0  # log P that a character is written twice


class Work(NamedTuple):
    """Scratch space for one clause."""

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    word: NDArray[np.int32]
    price: NDArray[np.float32]
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    chain: NDArray[np.int32]


@numba.njit(inline="always")
def _pair(lm, mask, shift, left, right):
    """Log P(right | left)."""
    at = find_bigram(lm.bigrams, mask, shift, left, right)
    if at >= 0:
        value = -_STEP * np.float32((lm.bigrams[at] >> np.uint64(12)) & _12_BITS)
    else:
        value = lm.backoff[left] + lm.log_prob[right]
    return value


@numba.njit(inline="always")
def _triple(lm, mask, shift, mask3, shift3, slot, left, right):
    """Log P(right | the word before left, left), whose bigram is in `slot` (-1: not listed)."""
    value = _LOW
    if slot >= 0:
        found = find_trigram(lm.trigrams, mask3, shift3, slot, right)
        if found >= 0:
            value = -_STEP * np.float32(found)
    if value == _LOW:
        value = _pair(lm, mask, shift, left, right)
        if slot >= 0:
            value -= _STEP * np.float32(lm.bigrams[slot] & _12_BITS)
    return value


@numba.njit(inline="always")
def span_key(points, first, last):
    """A 64-bit key of a span of characters."""
    key = np.uint64(last - first)
    for place in range(first, last):
        key = (key ^ np.uint64(points[place])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    return key | np.uint64(1)


@numba.njit(cache=True)
def fill_spans(keys, rows, points, sizes):
    """Put each span [T, MOST_WORD] into the hash table, with its row."""
    mask, shift = len(keys) - 1, shift_of(len(keys))
    for row in range(len(points)):
        key = span_key(points[row], 0, sizes[row])
        at = place_of(key, mask, shift)
        while keys[at] != 0 and keys[at] != key:
            at = (at + 1) & mask
        keys[at], rows[at] = key, row


@numba.njit(cache=True)
def _add(work, used, first, last, word, price):
    if used < MOST_EDGES:
        work.start[used] = first
        work.end[used] = last
        work.word[used] = word
        work.price[used] = price
        used += 1
    return used


@numba.njit(cache=True)
def _walk(points, n, begin, place, node, price, lm, mask, shift, work, used):
    """Add the words that go on from this node, which stands for [begin, place), as written."""
    while True:
        word = lm.word[node]
        if word >= 0:
            used = _add(work, used, begin, place, word, price)
        if place >= n or place >= begin + MOST_WORD:
            break
        node = child(lm.edge_keys, lm.edge_nodes, mask, shift, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@numba.njit(cache=True)
def _observed(points, n, lm, work, first, unknown):
    """Add the edges of the words as written; `first` [n + 1] is each place's first edge."""
    mask, shift = len(lm.edge_keys) - 1, shift_of(len(lm.edge_keys))
    used = 0
    for place in range(n):
        first[place] = used
        node = child(lm.edge_keys, lm.edge_nodes, mask, shift, 0, points[place])
        if node < 0 or lm.word[node] < 0:
            used = _add(work, used, place, place + 1, 0, unknown)
        if node >= 0:
            used = _walk(points, n, place, place + 1, node, 0.0, lm, mask, shift, work, used)
    first[n] = used
    return used


@numba.njit(cache=True)
def _edited(points, n, lm, channel, settings, work, used):
    """Add the edges that undo one error or two in a word."""
    mask, shift = len(lm.edge_keys) - 1, shift_of(len(lm.edge_keys))
    weight, cost = np.float32(settings.channel), np.float32(settings.error)
    twice = np.float32(weight * settings.repeated - cost)
    for begin in range(n):
        node, place = 0, begin
        while True:  # [begin, place) is as written; the error is at `place`
            row = channel.slot[points[place]]
            for k in range(channel.bounds[row - 1], channel.bounds[row]) if row else range(0):
                right = channel.right[k]
                to = child(lm.edge_keys, lm.edge_nodes, mask, shift, node, right)
                if to < 0:
                    continue
                price = weight * channel.log_prob[k] - cost
                used = _walk(points, n, begin, place + 1, to, price, lm, mask, shift, work, used)
                if k < channel.bounds[row - 1] + SECOND:
                    used = _second(
                        points, n, begin, place + 1, to, price, lm, channel, settings, work, used
                    )
            if place > begin and points[place] == points[place - 1]:
                used = _walk(points, n, begin, place + 1, node, twice, lm, mask, shift, work, used)
            node = child(lm.edge_keys, lm.edge_nodes, mask, shift, node, points[place])
            place += 1
            if node < 0 or place >= n or place >= begin + MOST_WORD:
                break
    return used


@numba.njit(cache=True)
def _second(points, n, begin, place, node, price, lm, channel, settings, work, used):
    """Add the edges with another error after the first, the right character being likely."""
    mask, shift = len(lm.edge_keys) - 1, shift_of(len(lm.edge_keys))
    weight, cost = np.float32(settings.channel), np.float32(settings.error)
    while place < n and place < begin + MOST_WORD:
        row = channel.slot[points[place]]
        if row:
            low = channel.bounds[row - 1]
            for k in range(low, min(channel.bounds[row], low + SECOND)):
                to = child(lm.edge_keys, lm.edge_nodes, mask, shift, node, channel.right[k])
                if to >= 0:
                    both = price + weight * channel.log_prob[k] - cost
                    used = _walk(points, n, begin, place + 1, to, both, lm, mask, shift, work, used)
        node = child(lm.edge_keys, lm.edge_nodes, mask, shift, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@numba.njit(cache=True)
def _spans(points, n, channel, settings, work, used):
    """Add the edges that put a whole word for an observed span."""
    mask, shift = len(channel.span_keys) - 1, shift_of(len(channel.span_keys))
    for begin in range(n - 1):
        for last in range(begin + 2, min(n, begin + 4) + 1):
            key = span_key(points, begin, last)
            at = place_of(key, mask, shift)
            while channel.span_keys[at] != 0 and channel.span_keys[at] != key:
                at = (at + 1) & mask
            if channel.span_keys[at] == 0:
                continue
            row = channel.span_rows[at]
            for k in range(channel.span_bounds[row], channel.span_bounds[row + 1]):
                price = settings.channel * channel.span_log_prob[k] - settings.error
                used = _add(work, used, begin, last, channel.span_words[k], np.float32(price))
    return used


@numba.njit(cache=True)
def _best_before_and_after(n, lm, work, first, used, head):
    """Score the words as written: `before` and `after` of each edge; return the best path's."""
    mask, shift = len(lm.bigrams) - 1, shift_of(len(lm.bigrams))
    for edge in range(used):
        work.chain[edge] = head[work.end[edge]]
        head[work.end[edge]] = edge
    for edge in range(used):
        word, best = work.word[edge], _LOW
        if work.start[edge] == 0:
            best = lm.log_prob[word]
        left = head[work.start[edge]]
        while left >= 0:
            best = max(best, work.before[left] + _pair(lm, mask, shift, work.word[left], word))
            left = work.chain[left]
        work.before[edge] = best + work.price[edge]
    whole = _LOW
    for edge in range(used - 1, -1, -1):
        best = np.float32(0.0)
        if work.end[edge] == n:
            whole = max(whole, work.before[edge])
        else:
            best = _LOW
            for right in range(first[work.end[edge]], first[work.end[edge] + 1]):
                score = _pair(lm, mask, shift, work.word[edge], work.word[right])
                best = max(best, score + work.price[right] + work.after[right])
        work.after[edge] = best
    return whole


@numba.njit(cache=True)
def _ceiling(n, lm, work, first, head, before, after):
    """Bound the best scores before and after each place, the word between them apart."""
    for place in range(n + 1):
        before[place] = np.float32(0.0) if place == 0 else _LOW
        after[place] = np.float32(0.0) if place == n else _LOW
        left = head[place]
        while left >= 0:
            before[place] = max(before[place], work.before[left])
            left = work.chain[left]
        if place < n:
            for right in range(first[place], first[place + 1]):
                score = work.after[right] + work.price[right] + lm.most[work.word[right]]
                after[place] = max(after[place], score)


@numba.njit(cache=True)
def _gain(n, lm, work, first, head, edge, floor, after):
    """Return the best bigram score of the clause with this edited edge, or little below `floor`."""
    mask, shift = len(lm.bigrams) - 1, shift_of(len(lm.bigrams))
    word, score = work.word[edge], _LOW
    if work.start[edge] == 0:
        score = lm.log_prob[word]
    left = head[work.start[edge]]
    while left >= 0:
        score = max(score, work.before[left] + _pair(lm, mask, shift, work.word[left], word))
        left = work.chain[left]
    score += work.price[edge]
    if score + after[work.end[edge]] < floor:
        return _LOW
    if work.end[edge] < n:
        best = _LOW
        for right in range(first[work.end[edge]], first[work.end[edge] + 1]):
            pair = _pair(lm, mask, shift, word, work.word[right])
            best = max(best, pair + work.price[right] + work.after[right])
        score += best
    return score


@numba.njit(cache=True)
def _prune(n, lm, settings, work, first, head, observed, used, whole):
    """Keep the edited edges within the margin of the words as written; return how many are left."""
    floor = whole - np.float32(settings.margin)
    before = np.empty(n + 1, np.float32)
    after = np.empty(n + 1, np.float32)
    _ceiling(n, lm, work, first, head, before, after)
    kept = observed
    for edge in range(observed, used):
        place = work.start[edge]
        bound = before[place] + work.price[edge] + lm.most[work.word[edge]]
        if bound + after[work.end[edge]] < floor:
            continue
        score = _gain(n, lm, work, first, head, edge, floor, after)
        if score < floor or kept >= observed + MOST_KEPT:
            continue
        work.start[kept], work.end[kept] = work.start[edge], work.end[edge]
        work.word[kept], work.price[kept] = work.word[edge], work.price[edge]
        kept += 1
    return kept


@numba.njit(cache=True)
def _states(n, work, used):
    """Order edges by start; number the states (edge before, edge).

    Returns the order, the first state of each edge, the number of its states, and their edges
    before (-1 at the start of the clause).
    """
    order = np.argsort(work.start[:used], kind="mergesort")
    head = np.full(n + 1, -1, np.int32)
    leading = np.zeros(n + 1, np.int64)
    for edge in range(used):
        work.chain[edge] = head[work.end[edge]]
        head[work.end[edge]] = edge
        leading[work.end[edge]] += 1
    low, count, total = np.empty(used, np.int64), np.empty(used, np.int64), 0
    for edge in order:
        low[edge] = total
        count[edge] = leading[work.start[edge]] if work.start[edge] else 1
        total += count[edge]
    previous = np.full(total, -1, np.int32)
    for edge in range(used):
        state, left = low[edge], head[work.start[edge]]
        while left >= 0:
            previous[state] = left
            state += 1
            left = work.chain[left]
    return order, low, count, previous


@numba.njit(inline="always")
def _log_add(one, other):
    high, low = max(one, other), min(one, other)
    return high if low < -1e8 else high + math.log1p(math.exp(low - high))


@numba.njit(cache=True)
def _posteriors(n, lm, settings, work, used, observed, share, path):
    """Fill the posterior of each edited edge and whether it is on the best path.

    `share` and `path` [edges - observed] are written.
    """
    mask, shift = len(lm.bigrams) - 1, shift_of(len(lm.bigrams))
    mask3, shift3 = len(lm.trigrams) - 1, shift_of(len(lm.trigrams))
    cool = 1.0 / settings.temperature
    order, low, count, previous = _states(n, work, used)
    total = len(previous)
    slot = np.full(total, -1, np.int64)
    forward, best = np.full(total, -1e9), np.full(total, -1e9)
    back = np.full(total, -1, np.int64)
    entry = np.empty(total, np.int32)
    for edge in order:
        word, price = work.word[edge], work.price[edge]
        for state in range(low[edge], low[edge] + count[edge]):
            left = previous[state]
            entry[state] = edge
            if left < 0:
                best[state] = lm.log_prob[word] + price
                forward[state] = best[state] * cool
                continue
            slot[state] = find_bigram(lm.bigrams, mask, shift, work.word[left], word)
            for one in range(low[left], low[left] + count[left]):
                score = price + _triple(
                    lm, mask, shift, mask3, shift3, slot[one], work.word[left], word
                )
                forward[state] = _log_add(forward[state], forward[one] + score * cool)
                if best[one] + score > best[state]:
                    best[state], back[state] = best[one] + score, one
    whole, top, last = -1e9, -1e9, -1
    backward = np.full(total, -1e9)
    for state in range(total):
        if work.end[entry[state]] == n:
            backward[state] = 0.0
            whole = _log_add(whole, forward[state])
            if best[state] > top:
                top, last = best[state], state
    for state in range(total - 1, -1, -1):
        left, edge = previous[state], entry[state]
        if left < 0:
            continue
        for one in range(low[left], low[left] + count[left]):
            score = work.price[edge] + _triple(
                lm, mask, shift, mask3, shift3, slot[one], work.word[left], work.word[edge]
            )
            backward[one] = _log_add(backward[one], backward[state] + score * cool)
    share[: used - observed] = 0.0
    path[: used - observed] = 0
    for state in range(total):
        if entry[state] >= observed:
            share[entry[state] - observed] += math.exp(
                min(0.0, forward[state] + backward[state] - whole)
            )
    while last >= 0:
        if entry[last] >= observed:
            path[entry[last] - observed] = 1
        last = back[last]


@numba.njit(cache=True)
def _is_han(point):
    return 0x4E00 <= point <= 0x9FFF or 0x3400 <= point <= 0x4DBF or point == 0x3007


@numba.njit(cache=True)
def _write(points, begin, sentence, edge, share, path, work, channel, out, rows):
    """Write one edit, what the word and the text have in common at both ends left out."""
    word = work.word[edge]
    first, last = work.start[edge], work.end[edge]
    low, high = 0, channel.word_size[word]
    while first < last and low < high and points[first] == channel.word_points[word, low]:
        first += 1
        low += 1
    while first < last and low < high and points[last - 1] == channel.word_points[word, high - 1]:
        last -= 1
        high -= 1
    out.place[rows, 0] = sentence
    out.place[rows, 1], out.place[rows, 2] = begin + first, begin + last
    out.place[rows, 3], out.place[rows, 4], out.place[rows, 5] = word, low, high
    out.share[rows] = share
    out.path[rows] = path


class Edits(NamedTuple):
    """What the kernel writes: [E, 6] sentence, start, end, word, and the part of the word."""

    place: NDArray[np.int64]
    share: NDArray[np.float64]
    path: NDArray[np.uint8]


@numba.njit(nogil=True, cache=True)
def correct(points, offsets, lm, channel, settings, least, work, out):
    """Write the edits of sentences [offsets[s]:offsets[s + 1]] of `points`; return how many.

    An edit is written where its posterior is `least` or it is on its clause's best path. Returns
    minus the number of the sentence that found `out` full.
    """
    share = np.empty(MOST_KEPT, np.float64)
    path = np.empty(MOST_KEPT, np.uint8)
    head = np.empty(LONGEST_CLAUSE + 1, np.int32)
    first = np.empty(LONGEST_CLAUSE + 1, np.int64)
    rows = 0
    for sentence in range(len(offsets) - 1):
        begin, stop = offsets[sentence], offsets[sentence + 1]
        while begin < stop:
            if not _is_han(points[begin]):
                begin += 1
                continue
            n = 1
            while n < LONGEST_CLAUSE and begin + n < stop and _is_han(points[begin + n]):
                n += 1
            clause = points[begin : begin + n]
            observed = _observed(clause, n, lm, work, first, np.float32(settings.unknown))
            used = _edited(clause, n, lm, channel, settings, work, observed)
            used = _spans(clause, n, channel, settings, work, used)
            head[: n + 1] = -1
            whole = _best_before_and_after(n, lm, work, first, observed, head)
            used = _prune(n, lm, settings, work, first, head, observed, used, whole)
            if used > observed:
                _posteriors(n, lm, settings, work, used, observed, share, path)
                for edge in range(observed, used):
                    if share[edge - observed] >= least or path[edge - observed]:
                        if rows == len(out.share):
                            return -sentence - 1
                        _write(
                            clause,
                            begin - offsets[sentence],
                            sentence,
                            edge,
                            share[edge - observed],
                            path[edge - observed],
                            work,
                            channel,
                            out,
                            rows,
                        )
                        rows += 1
            begin += n
    return rows


def workspace() -> Work:
    """Return scratch space for `correct`, for one thread."""
    def integers() -> NDArray[np.int32]:
        return np.empty(MOST_EDGES, np.int32)

    def floats() -> NDArray[np.float32]:
        return np.empty(MOST_EDGES, np.float32)

    return Work(integers(), integers(), integers(), floats(), floats(), floats(), integers())
