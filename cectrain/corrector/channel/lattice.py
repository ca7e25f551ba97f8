"""The word lattice of a clause, compiled by numba: words as written, and with errors undone.

A clause is a run of Han characters. Its lattice has an edge for each word of the n-gram model that
can be read there, as written or with errors undone; an edge's price is λ · log P(observed | right)
minus θ for each error. Two passes:

1. Here, bigrams over the words as written give the best score before and after each place, so that
   the gain of a single edited edge is local. Edges that lose more than a margin go.
2. In `decode.py`, trigrams over the edges that are left: forward and backward sums give the
   posterior of each edit; the best path says which edits belong together.
"""

from __future__ import annotations

import numpy as np

from cecdata import ngram
from cecdata.common.kernels.jit import allocating, called, compiled_with, inlined
from cecdata.ngram.kernels import STEP, child, find_bigram, find_trigram, place_of, shift_of
from cectrain.corrector.channel.layout import MOST_EDGES, MOST_KEPT, MOST_WORD

SECOND = 12  # candidates
LOW = np.float32(-1e9)
_STEP = np.float32(STEP)
_12_BITS = np.uint64(4095)


@inlined
def pair(lm, mask, shift, left, right):
    """Log P(right | left)."""
    at = find_bigram(lm.bigrams, mask, shift, left, right)
    if at >= 0:
        value = -_STEP * np.float32((lm.bigrams[at] >> np.uint64(12)) & _12_BITS)
    else:
        value = lm.backoff[left] + lm.log_prob[right]
    return value


@inlined
def triple(lm, mask, shift, mask3, shift3, slot, left, right):
    """Log P(right | the word before left, left), whose bigram is in `slot` (-1: not listed)."""
    value = LOW
    if slot >= 0:
        found = find_trigram(lm.trigrams, mask3, shift3, slot, right)
        if found >= 0:
            value = -_STEP * np.float32(found)
    if value == LOW:
        value = pair(lm, mask, shift, left, right)
        if slot >= 0:
            value -= _STEP * np.float32(lm.bigrams[slot] & _12_BITS)
    return value


@inlined
def span_key(points, first, last):
    """A 64-bit key of a span of characters."""
    key = np.uint64(last - first)
    for place in range(first, last):
        key = (key ^ np.uint64(points[place])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    return key | np.uint64(1)


@compiled_with(ngram)
def fill_spans(keys, rows, points, sizes):
    """Put each span [T, MOST_WORD] into the hash table, with its row."""
    mask, shift = len(keys) - 1, shift_of(len(keys))
    for row in range(len(points)):
        key = span_key(points[row], 0, sizes[row])
        at = place_of(key, mask, shift)
        while keys[at] != 0 and keys[at] != key:
            at = (at + 1) & mask
        keys[at], rows[at] = key, row


@called
def _add(work, used, first, last, word, price):
    if used < MOST_EDGES:
        work.start[used] = first
        work.end[used] = last
        work.word[used] = word
        work.price[used] = price
        used += 1
    return used


@called
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


@called
def observed_edges(points, n, lm, work, first, unknown):
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


@called
def edited_edges(points, n, lm, channel, settings, work, used):
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


@called
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


@called
def span_edges(points, n, channel, settings, work, used):
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


@called
def best_before_and_after(n, lm, work, first, used, head):
    """Score the words as written: `before` and `after` of each edge; return the best path's."""
    mask, shift = len(lm.bigrams) - 1, shift_of(len(lm.bigrams))
    for edge in range(used):
        work.chain[edge] = head[work.end[edge]]
        head[work.end[edge]] = edge
    for edge in range(used):
        word, best = work.word[edge], LOW
        if work.start[edge] == 0:
            best = lm.log_prob[word]
        left = head[work.start[edge]]
        while left >= 0:
            best = max(best, work.before[left] + pair(lm, mask, shift, work.word[left], word))
            left = work.chain[left]
        work.before[edge] = best + work.price[edge]
    whole = LOW
    for edge in range(used - 1, -1, -1):
        best = np.float32(0.0)
        if work.end[edge] == n:
            whole = max(whole, work.before[edge])
        else:
            best = LOW
            for right in range(first[work.end[edge]], first[work.end[edge] + 1]):
                score = pair(lm, mask, shift, work.word[edge], work.word[right])
                best = max(best, score + work.price[right] + work.after[right])
        work.after[edge] = best
    return whole


@called
def _ceiling(n, lm, work, first, head, before, after):
    """Bound the best scores before and after each place, the word between them apart."""
    for place in range(n + 1):
        before[place] = np.float32(0.0) if place == 0 else LOW
        after[place] = np.float32(0.0) if place == n else LOW
        left = head[place]
        while left >= 0:
            before[place] = max(before[place], work.before[left])
            left = work.chain[left]
        if place < n:
            for right in range(first[place], first[place + 1]):
                score = work.after[right] + work.price[right] + lm.most[work.word[right]]
                after[place] = max(after[place], score)


@called
def _gain(n, lm, work, first, head, edge, floor, after):
    """Return the best bigram score of the clause with this edited edge, or little below `floor`."""
    mask, shift = len(lm.bigrams) - 1, shift_of(len(lm.bigrams))
    word, score = work.word[edge], LOW
    if work.start[edge] == 0:
        score = lm.log_prob[word]
    left = head[work.start[edge]]
    while left >= 0:
        score = max(score, work.before[left] + pair(lm, mask, shift, work.word[left], word))
        left = work.chain[left]
    score += work.price[edge]
    if score + after[work.end[edge]] < floor:
        return LOW
    if work.end[edge] < n:
        best = LOW
        for right in range(first[work.end[edge]], first[work.end[edge] + 1]):
            score_of_pair = pair(lm, mask, shift, word, work.word[right])
            best = max(best, score_of_pair + work.price[right] + work.after[right])
        score += best
    return score


@allocating
def prune(n, lm, settings, work, first, head, observed, used, whole):
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
