"""Posteriors and the best path of a clause's lattice, and the kernel that corrects sentences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata import ngram
from cecdata.common.kernels.jit import allocating, called, compiled_with, inlined
from cecdata.ngram.kernels import find_bigram, shift_of
from cectrain.corrector.channel.lattice import (
    best_before_and_after,
    edited_edges,
    observed_edges,
    prune,
    span_edges,
    triple,
)
from cectrain.corrector.channel.layout import LONGEST_CLAUSE, MOST_KEPT


@allocating
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


@inlined
def _log_add(one, other):
    high, low = max(one, other), min(one, other)
    return high if low < -1e8 else high + math.log1p(math.exp(low - high))


@allocating
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
                score = price + triple(
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
            score = work.price[edge] + triple(
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


@called
def _is_han(point):
    return 0x4E00 <= point <= 0x9FFF or 0x3400 <= point <= 0x4DBF or point == 0x3007


@called
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


@compiled_with(ngram)
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
            observed = observed_edges(clause, n, lm, work, first, np.float32(settings.unknown))
            used = edited_edges(clause, n, lm, channel, settings, work, observed)
            used = span_edges(clause, n, channel, settings, work, used)
            head[: n + 1] = -1
            whole = best_before_and_after(n, lm, work, first, observed, head)
            used = prune(n, lm, settings, work, first, head, observed, used, whole)
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
