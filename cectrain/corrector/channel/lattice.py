"""The words of a clause as written, compiled by numba: their n-grams and their best scores.

A clause is a run of Han characters. Its lattice has an edge for each word of the n-gram model that
can be read there, as written or with errors undone; an edge's price is
λ · log P(observed | right) minus θ for each error. Two passes:

1. Here, bigrams over the words as written give the best score before and after each place, so that
   the gain of a single edited edge is local. Edges that lose more than a margin are left out.
2. In `decode.py`, trigrams over the edges that are left: forward and backward sums give the
   posterior of each edit; the best path says which edits belong together.

Kernels that add edges take the number of edges, `used`, and return the new one. `begin` and `last`
are the span of an edge, `floor` is the least score of the clause with it, and `node` stands for the
characters so far in the trie of the model's words, -1 where no word begins so.
"""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels import called, inlined
from cecdata.lm.kernels import BYTE, LOWER, STEP, find_bigram, find_trigram, next_node
from cectrain.corrector.channel.layout import COMPLETED, FOREIGN, HOLE, MOST_KEPT, MOST_WORD, PERSON
from cectrain.corrector.channel.tables import find_row, make_span_key

LOW = np.float32(-1e9)
# log P of a family name, of a character of a given name, of a character of a foreign name
FAMILY_NAME, GIVEN, FOREIGN_SIGN = -4.6, -7.0, -5.5
_STEP = np.float32(STEP)
SECOND = 12  # candidates for the second error of a word
AGAIN = np.float32(6.0)  # nats that the second error in a term costs less than the first


@inlined
def log_prob_of_pair(lm, left, right):
    """Return log P(right | left).

    The two lowest bytes of a bigram are minus log P, then minus its back-off, in steps.
    """
    at = find_bigram(lm.bigrams, lm.bigram_marks, lm.bigram_shift, left, right)
    if at >= 0:
        value = -_STEP * np.float32((lm.bigrams[at] >> BYTE) & LOWER)
    else:
        value = lm.backoff[left] + lm.log_prob[right]
    return value


@inlined
def log_prob_of_triple(lm, slot, left, right):
    """Return log P(right | the word before left, left); `slot` has their bigram (-1: none)."""
    value = LOW
    if slot >= 0:
        steps = find_trigram(lm.trigrams, lm.trigram_shift, slot, right)
        if steps >= 0:
            value = -_STEP * np.float32(steps)
    if value == LOW:
        value = log_prob_of_pair(lm, left, right)
        if slot >= 0:
            value -= _STEP * np.float32(lm.bigrams[slot] & LOWER)  # the bigram's back-off
    return value


@inlined
def add_edge(work, used, first, last, word, price):
    """Write an edge; return the number of edges."""
    work.start[used] = first
    work.end[used] = last
    work.word[used] = word
    work.price[used] = price
    return used + 1


@called
def add_observed_edges(clause):
    """Add the edges of words as written and of likely names, fill `first`; return how many."""
    points, lm, work = clause.points, clause.lm, clause.work
    unknown = np.float32(clause.settings.unknown)
    used, n = 0, len(points)
    for begin in range(n):
        work.first[begin] = used
        node = next_node(lm, 0, points[begin])
        if node < 0 or lm.word[node] < 0:
            used = add_edge(work, used, begin, begin + 1, 0, unknown)
        place = begin + 1
        while node >= 0:
            if lm.word[node] >= 0:
                used = add_edge(work, used, begin, place, lm.word[node], 0.0)
            if place >= n or place >= begin + MOST_WORD:
                break
            node = next_node(lm, node, points[place])
            place += 1
        used = _add_names(clause, begin, used)
    work.first[n] = used
    return used


@called
def _add_names(clause, begin, used):
    """Add the edges of a family name with one or two characters, and of a foreign name."""
    points, kinds, work = clause.points, clause.channel.kinds, clause.work
    n = len(points)
    # the unknown word stands for a name, so its own log P is subtracted
    base = np.float32(clause.settings.name) - clause.lm.log_prob[0]
    if kinds[points[begin]] & PERSON:
        for last in range(begin + 2, min(n, begin + 3) + 1):
            price = base + np.float32(FAMILY_NAME + GIVEN * (last - begin - 1))
            used = add_edge(work, used, begin, last, 0, price)
    last = begin
    while last < min(n, begin + MOST_WORD) and kinds[points[last]] & FOREIGN:
        last += 1
    is_inside = begin > 0 and kinds[points[begin - 1]] & FOREIGN  # of a longer such name
    if last >= begin + 3 and not is_inside:
        price = base + np.float32(FOREIGN_SIGN * (last - begin))
        used = add_edge(work, used, begin, last, 0, price)
    return used


@called
def chain_edges(length, work, first, used):
    """Put the edges from `first` on at the heads of the lists of edges that end at one place."""
    if first == 0:  # new lists
        work.head[: length + 1] = -1
        work.leading[: length + 1] = 0
    for edge in range(first, used):
        work.chain[edge] = work.head[work.end[edge]]
        work.head[work.end[edge]] = edge
        work.leading[work.end[edge]] += 1


@called
def score_observed(length, lm, work, used):
    """Score the words as written, forwards and backwards; return the score of the best path.

    `before` of an edge is the best score of a path up to it, its price included, and `after` that
    of a path behind it, without its price. Edges are sorted by their starts.
    """
    for edge in range(used):
        word, best = work.word[edge], LOW
        if work.start[edge] == 0:
            best = lm.log_prob[word]
        left = work.head[work.start[edge]]
        while left >= 0:
            best = max(best, work.before[left] + log_prob_of_pair(lm, work.word[left], word))
            left = work.chain[left]
        work.before[edge] = best + work.price[edge]
    whole = LOW
    for edge in range(used - 1, -1, -1):
        best = np.float32(0.0)
        if work.end[edge] == length:
            whole = max(whole, work.before[edge])
        else:
            best = LOW
            for right in range(work.first[work.end[edge]], work.first[work.end[edge] + 1]):
                score = log_prob_of_pair(lm, work.word[edge], work.word[right])
                best = max(best, score + work.price[right] + work.after[right])
        work.after[edge] = best
    return whole


@called
def fill_bounds(length, lm, work):
    """Fill `ahead` and `rest`, upper bounds of what words as written score before and after each
    place, and `leave` and `enter`, the same beside a word that is in no bigram, as a term.
    """
    for place in range(length + 1):
        work.ahead[place] = work.leave[place] = np.float32(0.0) if place == 0 else LOW
        work.rest[place] = work.enter[place] = np.float32(0.0) if place == length else LOW
        left = work.head[place]
        while left >= 0:
            before = work.before[left]
            work.ahead[place] = max(work.ahead[place], before)
            work.leave[place] = max(work.leave[place], before + lm.backoff[work.word[left]])
            left = work.chain[left]
        if place < length:
            for right in range(work.first[place], work.first[place + 1]):
                after, word = work.after[right] + work.price[right], work.word[right]
                work.rest[place] = max(work.rest[place], after + lm.most[word])
                work.enter[place] = max(work.enter[place], after + lm.log_prob[word])


@called
def add_edited_edges(clause, floor, used):
    """Add the edges that undo errors and with which the clause scores `floor` or more.

    Words with one error or two, words whose whole observed form a span operator writes, and words
    of which one character is missing.
    """
    points, n = clause.points, len(clause.points)
    for begin in range(n):
        node, place = 0, begin
        while True:  # [begin, place) is as written; the first error is at `place`
            used = _add_one_error(clause, begin, place, node, floor, used)
            node = next_node(clause.lm, node, points[place])
            place += 1
            if node < 0 or place >= n or place >= begin + MOST_WORD:
                break
        used = _add_spans(clause, begin, floor, used)
        used = _add_completions(clause, begin, floor, used)
        used = _add_terms(clause, begin, floor, used)
    return used


@called
def _add_one_error(clause, begin, place, node, floor, used):
    """Add the words with an error at `place`, and those with another one after it.

    `node` stands for what is written from `begin` to `place`.
    """
    points, channel = clause.points, clause.channel
    weight = np.float32(clause.settings.channel)
    cost = np.float32(clause.settings.error) + clause.work.guard[place]
    slot = channel.slot[points[place]]  # the row of what the character may stand for, plus 1
    if slot:
        first = channel.bounds[slot - 1]
        for k in range(first, channel.ends[slot - 1]):
            right_node = next_node(clause.lm, node, channel.right[k])
            if right_node < 0:
                continue
            price = weight * channel.log_prob[k] - cost
            used = _add_unchanged(clause, begin, place + 1, right_node, price, floor, used)
            if k < first + SECOND:
                used = _add_two_errors(clause, begin, place + 1, right_node, price, floor, used)
    if place > begin and points[place] == points[place - 1]:  # written twice
        twice = np.float32(weight * channel.repeated - cost)
        used = _add_unchanged(clause, begin, place + 1, node, twice, floor, used)
    return used


@called
def _add_two_errors(clause, begin, place, node, price, floor, used):
    """Add the words with another error, at `place` or later, after one with this price.

    Of the right characters of a place, which are sorted by likelihood, the first are tried.
    """
    points, lm, channel = clause.points, clause.lm, clause.channel
    weight, cost = np.float32(clause.settings.channel), np.float32(clause.settings.error)
    while place < len(points) and place < begin + MOST_WORD:
        slot = channel.slot[points[place]]
        if slot:
            first = channel.bounds[slot - 1]
            for k in range(first, min(channel.ends[slot - 1], first + SECOND)):
                right_node = next_node(lm, node, channel.right[k])
                if right_node >= 0:
                    total = price + weight * channel.log_prob[k] - cost
                    total -= clause.work.guard[place]
                    used = _add_unchanged(clause, begin, place + 1, right_node, total, floor, used)
        node = next_node(lm, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@called
def _add_unchanged(clause, begin, place, node, price, floor, used):
    """Add the words that go on as written from `place`.

    `node` of the trie stands for their characters before it, whose errors have this price.
    """
    points, lm, n = clause.points, clause.lm, len(clause.points)
    while True:
        word = lm.word[node]
        if word >= 0:
            used = _add_if_likely(clause, begin, place, word, price, floor, used)
        if place >= n or place >= begin + MOST_WORD:
            break
        node = next_node(lm, node, points[place])
        if node < 0:
            break
        place += 1
    return used


@called
def _add_spans(clause, begin, floor, used):
    """Add the words that a span operator or a missing character turned into these characters.

    Such a span has one to four characters.
    """
    points, channel, settings = clause.points, clause.channel, clause.settings
    guard = clause.work.guard
    for last in range(begin + 1, min(len(points), begin + 4) + 1):
        key = make_span_key(points, begin, last)
        row = find_row(channel.span_keys, channel.span_rows, channel.span_shift, key)
        if row < 0:
            continue
        for k in range(channel.span_bounds[row], channel.span_bounds[row + 1]):
            price = np.float32(settings.channel * channel.span_log_prob[k] - settings.error)
            price -= max(guard[begin], guard[last - 1])
            word = channel.span_words[k]
            used = _add_if_likely(clause, begin, last, word, price, floor, used)
    return used


@called
def _add_completions(clause, begin, floor, used):
    """Add the words of which one character stands wrong, by an error that the channel lacks.

    All such errors have one price. In a word of two characters the wrong one must sound nearly like
    the right one.
    """
    points, channel, settings = clause.points, clause.channel, clause.settings
    price = np.float32(settings.channel * COMPLETED - settings.error)
    for last in range(begin + 2, min(len(points), begin + 4) + 1):
        for place in range(begin, last):
            observed = points[place]
            points[place] = HOLE  # for the key only: a copy would cost more
            key = make_span_key(points, begin, last)
            points[place] = observed
            row = find_row(channel.form_keys, channel.form_rows, channel.form_shift, key)
            if row < 0:
                continue
            for k in range(channel.form_bounds[row], channel.form_bounds[row + 1]):
                word = channel.form_words[k]
                right = channel.word_points[word, place - begin]
                if right == observed or (
                    last == begin + 2 and not _sounds_near(channel, observed, right)
                ):
                    continue
                if _log_prob_of_error(observed, right, channel)[0] > LOW:  # `_add_one_error` has it
                    continue
                guarded = price - clause.work.guard[place]
                used = _add_if_likely(clause, begin, last, word, guarded, floor, used)
    return used


@inlined
def _sounds_near(channel, observed, right):
    """Return whether a usual syllable of one character is taken for one of the other."""
    near = False
    for i in range(2):
        for j in range(2):
            sound, right_sound = channel.sounds[observed, i], channel.sounds[right, j]
            if sound >= 0 and right_sound >= 0:
                near |= channel.near[sound, right_sound] != 0
    return near


@called
def _add_terms(clause, begin, floor, used):
    """Add the user's terms with two errors, or one for terms alone.

    They are found by the first right one of three characters. Who does not know a term gets more
    than one of its characters wrong, so that the second error costs less.
    """
    points, channel, settings, work = clause.points, clause.channel, clause.settings, clause.work
    least = floor - AGAIN + np.float32(2 * settings.error)
    for right_at in range(min(3, len(points) - begin)):
        row = 3 * channel.slot[points[begin + right_at]] + right_at
        for k in range(channel.term_bounds[row], channel.term_bounds[row + 1]):
            word = channel.term_words[k]
            last, errors, is_for_terms, price = begin + channel.word_size[word], 0, False, -AGAIN
            if last > len(points):
                continue
            if work.leave[begin] + clause.lm.most[word] + work.enter[last] < least:
                continue
            for place in range(begin, last):
                right = channel.word_points[word, place - begin]
                if points[place] != right:
                    errors += 1
                    chance, of_terms = _log_prob_of_error(points[place], right, channel)
                    is_for_terms |= of_terms
                    price += np.float32(settings.channel * chance - settings.error) + AGAIN
                    price -= work.guard[place]
                is_found_before = points[place] == right and place < begin + right_at
                if is_found_before or errors > 2 or price <= LOW:
                    errors = 3  # too many, or found by its earlier right character
                    break
            if errors == 2 or (errors == 1 and is_for_terms):
                used = _add_if_likely(clause, begin, last, word, price, floor, used)
    return used


@called
def _log_prob_of_error(observed, right, channel):
    """Return log P of an error, LOW if the channel lacks it, and whether only terms may have it."""
    slot = channel.slot[observed]
    if slot:
        for k in range(channel.bounds[slot - 1], channel.bounds[slot]):
            if channel.right[k] == right:
                return channel.log_prob[k], k >= channel.ends[slot - 1]
    return LOW, True


@inlined
def _add_if_likely(clause, begin, last, word, price, floor, used):
    """Add an edge where the best bigram score of the clause with it is `floor` or more."""
    work = clause.work
    high = price + clause.lm.most[word]
    fits = used < work.first[len(clause.points)] + MOST_KEPT
    near = fits and work.ahead[begin] + high + work.rest[last] >= floor
    if near and _reaches_floor(clause, begin, last, word, price, floor):
        used = add_edge(work, used, begin, last, word, price)
    return used


@called
def _reaches_floor(clause, begin, last, word, price, floor):
    """Return whether some words as written around this edge give the clause the score `floor`."""
    lm, work = clause.lm, clause.work
    least = floor - price - work.rest[last]  # what the words before and this one must score
    most, best = lm.most[word], LOW
    if begin == 0:
        best = lm.log_prob[word]
    left = work.head[begin]
    while left >= 0:
        if work.before[left] + most >= max(least, best):
            best = max(best, work.before[left] + log_prob_of_pair(lm, work.word[left], word))
        left = work.chain[left]
    if best < least:
        return False
    if last == len(clause.points):
        return True
    least = floor - price - best  # what the words after this one must score
    for right in range(work.first[last], work.first[last + 1]):
        after = work.price[right] + work.after[right]
        near = after + lm.most[work.word[right]] >= least
        if near and after + log_prob_of_pair(lm, word, work.word[right]) >= least:
            return True
    return False
