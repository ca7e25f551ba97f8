"""Posteriors and the best path of a clause's lattice, and the kernel that corrects sentences.

An edge is a word that can be read in the clause, as written or with errors undone. As trigrams see
three words, a state is an edge after another one, and a step leads from a state to the next.
`Work` in `layout.py` says what the arrays of edges, states and steps hold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata import lm as lm_room
from cecdata.common.kernels import called, entry_with
from cecdata.lm.kernels import find_bigram
from cectrain.corrector.channel import lattice, layout


@called
def _merge_edges(length, work, used):
    """Fill `work.sorted` with all edges by their start.

    The edges as written from a place s are first[s]:first[s + 1]; the edited ones, which are sorted
    already, are first[length]:used.
    """
    edited, place = work.first[length], 0
    for start in range(length):
        for edge in range(work.first[start], work.first[start + 1]):
            work.sorted[place] = edge
            place += 1
        while edited < used and work.start[edited] == start:
            work.sorted[place] = edited
            edited, place = edited + 1, place + 1


@called
def _number_states(work, used):
    """Number the pairs (edge before, edge), those of an edge in sequence; return how many.

    It is -1 where they, or the steps from one to the next, are too many for the arrays.
    """
    total = steps = 0
    for place in range(used):
        edge = work.sorted[place]
        state, edge_before = total, -1  # -1: the clause begins with this edge
        if work.start[edge]:
            edge_before = work.head[work.start[edge]]
        work.low[edge] = state
        work.states[edge] = 1 if work.start[edge] == 0 else work.leading[work.start[edge]]
        total += work.states[edge]
        if total > layout.MOST_STATES:
            return -1
        while state < total:
            work.entry[state], work.previous[state] = edge, edge_before
            if edge_before >= 0:
                steps += work.states[edge_before]
                edge_before = work.chain[edge_before]
            state += 1
    return total if steps <= layout.MOST_STEPS else -1


@called
def _run_forward(lm, work, cool, total):
    """Fill `best`, `back` and `forward` of each state, and the chances of the steps.

    A step leads from a state before to this one. Return their number; `cool` is 1 / temperature.
    """
    steps = 0
    for state in range(total):
        edge, edge_before = work.entry[state], work.previous[state]
        word, price = work.word[edge], work.price[edge]
        work.slot[state], work.back[state] = -1, -1
        if edge_before < 0:  # the clause begins with this word
            work.best[state] = lm.log_prob[word] + price
            work.forward[state] = 1.0
            continue
        left = work.word[edge_before]
        work.slot[state] = find_bigram(lm.bigrams, lm.bigram_marks, lm.bigram_shift, left, word)
        first, count = work.low[edge_before], work.states[edge_before]
        best = -1e9
        for before in range(first, first + count):
            score = price + lattice.log_prob_of_triple(lm, work.slot[before], left, word)
            score += work.best[before]
            work.step[steps + before - first] = score
            if score > best:
                best, work.back[state] = score, before
        forward = 0.0
        for before in range(first, first + count):
            chance = math.exp((work.step[steps + before - first] - best) * cool)
            work.step[steps + before - first] = chance
            forward += work.forward[before] * chance
        work.best[state], work.forward[state] = best, forward
        steps += count
    return steps


@called
def _run_backward(length, work, cool, total, steps):
    """Fill `backward` of each state; return the sum over all paths and the best path's last state.

    The steps, which `_run_forward` has written, are visited from the last one to the first.
    """
    last = -1
    for state in range(total):
        work.backward[state] = 0.0
        if work.end[work.entry[state]] == length and (
            last < 0 or work.best[state] > work.best[last]
        ):
            last = state
    whole, step = 0.0, steps
    for state in range(total - 1, -1, -1):
        if work.end[work.entry[state]] == length:
            work.backward[state] = math.exp((work.best[state] - work.best[last]) * cool)
            whole += work.forward[state] * work.backward[state]
        edge_before = work.previous[state]
        if edge_before < 0:
            continue
        first = work.low[edge_before]
        for before in range(first + work.states[edge_before] - 1, first - 1, -1):
            step -= 1
            work.backward[before] += work.backward[state] * work.step[step]
    return whole, last


@called
def _fill_posteriors(length, lm, work, cool, used):
    """Fill the posterior of each edited edge, and whether it is on the best path.

    Sums over paths are kept relative to the best path to a state, which keeps them near 1. Returns
    whether the clause's states fit into the workspace.
    """
    observed = work.first[length]
    _merge_edges(length, work, used)
    total = _number_states(work, used)
    if total < 0:
        return False
    steps = _run_forward(lm, work, cool, total)
    whole, last = _run_backward(length, work, cool, total, steps)
    for edge in range(observed, used):
        share = 0.0
        for state in range(work.low[edge], work.low[edge] + work.states[edge]):
            share += work.forward[state] * work.backward[state]
        work.share[edge - observed] = min(1.0, share / whole)
        work.path[edge - observed] = 0
    while last >= 0:
        if work.entry[last] >= observed:
            work.path[work.entry[last] - observed] = 1
        last = work.back[last]
    return True


@called
def _is_han(point):
    """Return whether a code point is a Han character, 〇 too."""
    return 0x3400 <= point <= 0x9FFF or point == 0x3007 or 0x20000 <= point <= 0x323AF


@called
def _read_clause(clause):
    """Fill the edges of a clause; return how many, or 0 where none is edited."""
    length, lm, work = len(clause.points), clause.lm, clause.work
    observed = lattice.add_observed_edges(clause)
    lattice.chain_edges(length, work, 0, observed)
    floor = lattice.score_observed(length, lm, work, observed) - np.float32(clause.settings.margin)
    lattice.fill_bounds(length, lm, work)
    used = lattice.add_edited_edges(clause, floor, observed)
    if used == observed:
        return 0
    lattice.chain_edges(length, work, observed, used)
    cool = 1.0 / clause.settings.temperature
    while not _fill_posteriors(length, lm, work, cool, used):
        # with fewer edited edges, the states fit
        used = observed + (used - observed) // 2
        lattice.chain_edges(length, work, 0, used)
    return used


@called
def _find_cut(length, work, used):
    """Return the last place of a long clause that the fewest words cross, known and edited ones.

    Only words that begin before the last `MOST_WORD` characters are known whole.
    """
    best, fewest = length, used
    for place in range(length // 2, length - layout.MOST_WORD + 2):
        crossing = 0
        for edge in range(used):
            crossing += work.start[edge] < place < work.end[edge]
        if crossing <= fewest:
            best, fewest = place, crossing
    return best


@called
def _write_edit(clause, begin, sentence, edge, out, row):
    """Write one edit without the characters that the word and the text share at both ends.

    `begin` is where the clause begins in the sentence.
    """
    points, channel, work = clause.points, clause.channel, clause.work
    word = work.word[edge]
    first, last = work.start[edge], work.end[edge]
    low, high = 0, channel.word_size[word]
    while first < last and low < high and points[first] == channel.word_points[word, low]:
        first += 1
        low += 1
    while first < last and low < high and points[last - 1] == channel.word_points[word, high - 1]:
        last -= 1
        high -= 1
    out.place[row, 0] = sentence
    out.place[row, 1], out.place[row, 2] = begin + first, begin + last
    out.place[row, 3], out.place[row, 4], out.place[row, 5] = word, low, high
    out.share[row] = work.share[edge - work.first[len(points)]]
    out.path[row] = work.path[edge - work.first[len(points)]]


class Edits(NamedTuple):
    """The output of the kernel for E edits.

    `place` [E, 6] holds sentence, start, end, word, and the part of the word (start, end). `share`
    is the posterior; `path` says whether the edit is on the best path.
    """

    place: NDArray[np.int64]
    share: NDArray[np.float64]
    path: NDArray[np.uint8]


@entry_with(lm_room)
def correct_sentences(points, offsets, guard, lm, channel, settings, least, work, out):
    """Write the edits of all sentences to `out`, and return their number.

    Sentence s is ``points[offsets[s] : offsets[s + 1]]``. `guard` [len(points)] is the further cost
    of an error at each place; it is raised here at pairs of characters that recur. An edit is
    written if its posterior is at least `least` or it is on the best path of its clause. If `out`
    has no room for an edit of sentence s, the function returns -1 - s.
    """
    rows = 0
    for sentence in range(len(offsets) - 1):
        begin, stop = offsets[sentence], offsets[sentence + 1]
        layout.guard_recurring(points, begin, stop, np.float32(settings.recurring), guard)
        while begin < stop:
            if not _is_han(points[begin]):
                begin += 1
                continue
            end = begin + 1  # of the clause
            while end < min(stop, begin + layout.LONGEST_CLAUSE) and _is_han(points[end]):
                end += 1
            for place in range(begin, end):
                work.guard[place - begin] = guard[place]
            clause = layout.Clause(points[begin:end], lm, channel, settings, work)
            used = _read_clause(clause)
            if end - begin == layout.LONGEST_CLAUSE and end < stop and _is_han(points[end]):
                length = end - begin
                end = begin + _find_cut(length, work, max(used, work.first[length]))
                clause = layout.Clause(points[begin:end], lm, channel, settings, work)
                used = _read_clause(clause)
            observed = work.first[end - begin]
            for edge in range(observed, used):
                if work.share[edge - observed] >= least or work.path[edge - observed]:
                    if rows == len(out.share):
                        return -sentence - 1
                    _write_edit(clause, begin - offsets[sentence], sentence, edge, out, rows)
                    rows += 1
            begin = end
    return rows
