"""The edited edges of a clause's lattice: words that the text says with errors undone."""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import called, inlined
from cecdata.ngram.kernels import place_of
from cectrain.corrector.channel.lattice import LOW, add, next_node, pair, span_key
from cectrain.corrector.channel.layout import MOST_KEPT, MOST_WORD

SECOND = 12  # candidates for the second error of a word


@called
def edited_edges(points, n, lm, channel, settings, floor, work, used):
    """Add the edges that undo errors and with which the clause scores `floor` or more.

    Words with one error or two, words whose whole observed form a span operator writes, and words
    of which one character is missing.
    """
    for begin in range(n):
        node, place = 0, begin
        while True:  # [begin, place) is as written; the first error is at `place`
            used = _first(points, n, begin, place, node, lm, channel, settings, floor, work, used)
            node = next_node(lm, node, points[place])
            place += 1
            if node < 0 or place >= n or place >= begin + MOST_WORD:
                break
        used = _spans(points, n, begin, lm, channel, settings, floor, work, used)
    return used


@called
def _first(points, n, begin, place, node, lm, channel, settings, floor, work, used):
    """Add the words with an error at `place`, and those with another one after it."""
    weight, cost = np.float32(settings.channel), np.float32(settings.error) + work.guard[place]
    row = channel.slot[points[place]]
    if row:
        low = channel.bounds[row - 1]
        for k in range(low, channel.bounds[row]):
            to = next_node(lm, node, channel.right[k])
            if to < 0:
                continue
            price = weight * channel.log_prob[k] - cost
            used = _walk(points, n, begin, place + 1, to, price, lm, floor, work, used)
            if k < low + SECOND:
                used = _second(
                    points, n, begin, place + 1, to, price, lm, channel, settings, floor, work, used
                )
    if place > begin and points[place] == points[place - 1]:
        twice = np.float32(weight * channel.repeated - cost)
        used = _walk(points, n, begin, place + 1, node, twice, lm, floor, work, used)
    return used


@called
def _second(points, n, begin, place, node, price, lm, channel, settings, floor, work, used):
    """Add the words with another error after the first; only likely right characters are tried."""
    weight, cost = np.float32(settings.channel), np.float32(settings.error)
    while place < n and place < begin + MOST_WORD:
        row = channel.slot[points[place]]
        if row:
            low = channel.bounds[row - 1]
            for k in range(low, min(channel.bounds[row], low + SECOND)):
                to = next_node(lm, node, channel.right[k])
                if to >= 0:
                    both = price + weight * channel.log_prob[k] - cost - work.guard[place]
                    used = _walk(points, n, begin, place + 1, to, both, lm, floor, work, used)
        node = next_node(lm, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@called
def _walk(points, n, begin, place, node, price, lm, floor, work, used):
    """Add the words that continue as written after this node, which stands for [begin, place)."""
    while True:
        word = lm.word[node]
        if word >= 0:
            used = _add_within(n, begin, place, word, price, lm, floor, work, used)
        if place >= n or place >= begin + MOST_WORD:
            break
        node = next_node(lm, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@called
def _spans(points, n, begin, lm, channel, settings, floor, work, used):
    """Add the words that a span operator or a missing character turned into these characters.

    Such a span has one to four characters.
    """
    mask = len(channel.span_keys) - 1
    for last in range(begin + 1, min(n, begin + 4) + 1):
        key = span_key(points, begin, last)
        at = place_of(key, mask, channel.span_shift)
        while channel.span_keys[at] != 0 and channel.span_keys[at] != key:
            at = (at + 1) & mask
        if channel.span_keys[at] == 0:
            continue
        row = channel.span_rows[at]
        for k in range(channel.span_bounds[row], channel.span_bounds[row + 1]):
            price = np.float32(settings.channel * channel.span_log_prob[k] - settings.error)
            price -= max(work.guard[begin], work.guard[last - 1])
            word = channel.span_words[k]
            used = _add_within(n, begin, last, word, price, lm, floor, work, used)
    return used


@inlined
def _add_within(n, begin, last, word, price, lm, floor, work, used):
    """Add an edge where the best bigram score of the clause with it is `floor` or more."""
    high = price + lm.most[word]
    fits = used < work.first[n] + MOST_KEPT
    near = fits and work.ahead[begin] + high + work.rest[last] >= floor
    if near and _scores(n, begin, last, word, price, lm, floor, work):
        used = add(work, used, begin, last, word, price)
    return used


@called
def _scores(n, begin, last, word, price, lm, floor, work):
    """Return whether some words as written around this edge give the clause the score `floor`."""
    least = floor - price - work.rest[last]  # what the words before and this one must score
    most, best = lm.most[word], LOW
    if begin == 0:
        best = lm.log_prob[word]
    left = work.head[begin]
    while left >= 0:
        if work.before[left] + most >= max(least, best):
            best = max(best, work.before[left] + pair(lm, work.word[left], word))
        left = work.chain[left]
    if best < least:
        return False
    if last == n:
        return True
    least = floor - price - best
    for right in range(work.first[last], work.first[last + 1]):
        after = work.price[right] + work.after[right]
        near = after + lm.most[work.word[right]] >= least
        if near and after + pair(lm, word, work.word[right]) >= least:
            return True
    return False
