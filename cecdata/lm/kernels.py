"""Numba kernels that fill the arrays of an n-gram table and look n-grams up in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels import called, compiled, inlined, read_code_point

# 8 bits of a log-probability in natural logarithms: 0 to -20.4 in steps of 0.08
STEP, MOST = np.float32(0.08), 255
BYTE = np.uint64(8)
LOWER = np.uint64(255)
PAIR = np.uint64(16)  # bits of a bigram's slot below its words
EMPTY = np.uint64(0)
# Fibonacci hashing: the golden ratio of 2**64
FACTOR = np.uint64(0x9E3779B97F4A7C15)
MARKS = np.uint64(2)  # log2 of the marks for each slot
_SIX, _63 = np.uint64(6), np.uint64(63)
_LONGEST_RUN = 4000  # characters of a run that are cut at once
_UNKNOWN = 25.0  # nats that a character costs that is no word


def quantise(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return log-probabilities or back-offs [N] as 8-bit steps; positive back-offs become 0."""
    return np.asarray(np.clip(np.rint(-values / STEP), 0, MOST), np.uint8)


def restore_steps(steps: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return the log-probabilities of 8-bit steps."""
    return np.asarray(-STEP * steps.astype(np.float32), np.float32)


@inlined
def slot_of_key(key, mask, shift):
    """Return the first slot of a key in a hash table of mask + 1 slots."""
    return np.int64((key * FACTOR) >> shift) & mask


@inlined
def _mark_of_key(key, shift):
    """Return the bit of a key among the marks."""
    return (key * FACTOR) >> (shift - MARKS)


@compiled
def find_shift(size):
    """Return the shift that leaves log2(size) bits, enough to number the slots of a table."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return np.uint64(64 - bits)


@compiled
def make_marks(slots, shift, low):
    """Return a bitmap by which most look-ups of keys that a hash table lacks can end at once.

    A slot of the table has its key above `low` other bits. shift: of the hash of a key.
    """
    marks = np.zeros((len(slots) << MARKS) >> 6, np.uint64)
    for slot in slots:
        if slot != EMPTY:
            bit = _mark_of_key(slot >> low, shift)
            marks[bit >> _SIX] |= np.uint64(1) << (bit & _63)
    return marks


@inlined
def _may_hold(marks, key, shift):
    """Return whether a key may be in the table: most are not, and their look-up ends here.

    The marks are small enough for the processor's cache; the table itself is not.
    """
    bit = _mark_of_key(key, shift)
    return (marks[bit >> _SIX] >> (bit & _63)) & np.uint64(1) != EMPTY


@inlined
def _find_slot(slots, key, low, shift):
    """Return the index of the slot with a key above `low` other bits, or else of an empty one."""
    at = slot_of_key(key, len(slots) - 1, shift)
    while slots[at] != EMPTY and slots[at] >> low != key:
        at = (at + 1) & (len(slots) - 1)
    return at


@compiled
def fill_bigrams(slots, pairs, log_prob, backoff):
    """Put each bigram into its slot: from above 40 bits of words, 8 of log P and 8 of back-off."""
    mask, shift = len(slots) - 1, find_shift(len(slots))
    for n in range(len(pairs)):
        key = np.uint64(pairs[n, 0]) << np.uint64(20) | np.uint64(pairs[n, 1])
        at = slot_of_key(key, mask, shift)
        while slots[at] != EMPTY:
            at = (at + 1) & mask
        low = np.uint64(log_prob[n]) << BYTE | np.uint64(backoff[n])
        slots[at] = key << PAIR | low


@compiled
def fill_trigrams(slots, bigrams, marks, triples, log_prob):
    """Put each trigram into its slot: its bigram's slot and the third word.

    Return the number of trigrams whose first two words are not a listed bigram.
    """
    mask, shift = len(slots) - 1, find_shift(len(slots))
    bigram_shift = find_shift(len(bigrams))
    lost = 0
    for n in range(len(triples)):
        first = find_bigram(bigrams, marks, bigram_shift, triples[n, 0], triples[n, 1])
        if first < 0:
            lost += 1
            continue
        key = np.uint64(first) << np.uint64(20) | np.uint64(triples[n, 2])
        at = slot_of_key(key, mask, shift)
        while slots[at] != EMPTY:
            at = (at + 1) & mask
        # plus 1, because 0 is an empty slot
        slots[at] = (key + np.uint64(1)) << BYTE | np.uint64(log_prob[n])
    return lost


@inlined
def find_bigram(slots, marks, shift, left, right):
    """Return the slot of a bigram, or -1."""
    key = np.uint64(left) << np.uint64(20) | np.uint64(right)
    slot = -1
    if _may_hold(marks, key, shift):
        at = _find_slot(slots, key, PAIR, shift)
        if slots[at] != EMPTY:
            slot = at
    return slot


@inlined
def find_trigram(slots, shift, first, word):
    """Return the 8-bit log P of a trigram whose bigram is in slot `first`, or -1."""
    key = np.uint64(first) << np.uint64(20) | np.uint64(word)
    at, wanted = slot_of_key(key, len(slots) - 1, shift), key + np.uint64(1)
    while slots[at] != EMPTY and slots[at] >> BYTE != wanted:
        at = (at + 1) & (len(slots) - 1)
    return np.int64(slots[at] & LOWER) if slots[at] != EMPTY else -1


@compiled
def fill_trie(keys, nodes, word, used, points, bounds, numbers):
    """Add each text to a trie of `used` nodes, the root being 0; return how many it has then.

    Text n is points[bounds[n]:bounds[n + 1]], and its number numbers[n]; for a text that the trie
    has, its number there is put in.
    """
    shift = find_shift(len(keys))
    for n in range(len(numbers)):
        node = 0
        for p in range(bounds[n], bounds[n + 1]):
            key = np.uint64(node) << np.uint64(21) | np.uint64(points[p])
            at = _find_slot(keys, key, EMPTY, shift)
            if keys[at] == EMPTY:
                keys[at] = key
                nodes[at] = used
                used += 1
            node = nodes[at]
        if word[node] < 0:
            word[node] = numbers[n]
        numbers[n] = word[node]
    return used


@compiled
def copy_trie(keys, nodes, from_keys, from_nodes):
    """Put the edges of a trie into another, larger hash table."""
    shift = find_shift(len(keys))
    for n in range(len(from_keys)):
        if from_keys[n] != EMPTY:
            at = _find_slot(keys, from_keys[n], EMPTY, shift)
            keys[at], nodes[at] = from_keys[n], from_nodes[n]


@inlined
def find_child(keys, nodes, marks, shift, node, point):
    """Return the node after this character in a trie's hash table of edges, or -1."""
    key = np.uint64(node) << np.uint64(21) | np.uint64(point)
    child = -1
    if _may_hold(marks, key, shift):
        at = _find_slot(keys, key, np.uint64(0), shift)
        if keys[at] != EMPTY:
            child = nodes[at]
    return child


@inlined
def next_node(tables, node, point):
    """Return the node of the trie of words after this character, or -1."""
    keys, nodes = tables.edge_keys, tables.edge_nodes
    return find_child(keys, nodes, tables.edge_marks, tables.edge_shift, node, point)


@compiled
def score_rows(data, bounds, tables, longest, nats):
    """Write log P of the Chinese characters of each UTF-8 text in nats.

    Each run of Chinese characters is cut into the words with the highest joint unigram probability.
    """
    for row in range(len(nats)):
        end = bounds[row + 1]
        points = np.empty(end - bounds[row], np.int64)
        length = 0
        at = np.uint64(bounds[row])
        while at < np.uint64(end):
            point, at = read_code_point(data, at)
            points[length] = np.int64(point)
            length += 1
        best = np.full(length + 1, -np.inf)
        size = np.ones(length + 1, np.int64)
        number = np.zeros(length + 1, np.int64)
        first = 0
        while first < length:
            if not _is_han(points[first]):
                first += 1
                continue
            last = first
            while last < length and _is_han(points[last]):
                last += 1
            _find_words(points, first, last, tables, longest, best, size, number)
            nats[row] = _add_words(nats[row], first, last, tables, size, number)
            first = last


@called
def _find_words(points, first, last, tables, longest, best, size, number):
    """Write the likeliest words of points[first:last].

    By the place at which a word ends: `best`, the log P of the words up to there, and the last of
    them, its `size` in characters and its `number`.
    """
    unknown = tables.log_prob[0]
    best[first] = 0.0
    for start in range(first, last):
        if best[start] + unknown > best[start + 1]:
            best[start + 1] = best[start] + unknown
            size[start + 1], number[start + 1] = 1, 0
        node = 0
        for stop in range(start, min(start + longest, last)):
            node = next_node(tables, node, points[stop])
            if node < 0:
                break
            word = tables.word[node]
            if word < 0:
                continue
            likely = best[start] + tables.log_prob[word]
            if likely > best[stop + 1]:
                best[stop + 1] = likely
                size[stop + 1], number[stop + 1] = stop + 1 - start, word


@called
def _add_words(total, first, last, tables, size, number):
    """Return `total` plus log P of the words of a run by bigrams, from the last word on."""
    stop = last
    while stop > first:
        word, start = number[stop], stop - size[stop]
        slot = -1
        if start > first:
            left = number[start]
            slot = find_bigram(tables.bigrams, tables.bigram_marks, tables.bigram_shift, left, word)
            if slot >= 0:
                total -= STEP * np.float64((tables.bigrams[slot] >> BYTE) & LOWER)
            else:
                total += tables.backoff[left]
        if slot < 0:
            total += tables.log_prob[word]
        stop = start
    return total


@compiled
def cut_runs(points, offsets, keys, nodes, marks, word, cost, longest, out):
    """Write the words of each sentence's runs of Han, -1 after a run; return the entries used.

    Sentence s is points[offsets[s]:offsets[s + 1]]; `cost` is -log P by word.
    """
    shift = find_shift(len(keys))
    used = 0
    best = np.empty(_LONGEST_RUN + 1, np.float32)
    back = np.empty(_LONGEST_RUN + 1, np.int32)
    chosen = np.empty(_LONGEST_RUN + 1, np.int32)
    for sentence in range(len(offsets) - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        while begin < end:
            run = points[begin : min(end, begin + _LONGEST_RUN)]
            length = 0
            while length < len(run) and 0x4E00 <= run[length] <= 0x9FFF:
                length += 1
            if length == 0:
                begin += 1
                continue
            # by place: the least cost up to it, where its last word begins, and which word it is
            best[: length + 1] = 1e9
            best[0] = 0.0
            for start in range(length):
                if best[start] + _UNKNOWN < best[start + 1]:
                    best[start + 1] = best[start] + _UNKNOWN
                    back[start + 1], chosen[start + 1] = start, 0
                node = 0
                for last in range(start, min(length, start + longest)):
                    node = find_child(keys, nodes, marks, shift, node, run[last])
                    if node < 0:
                        break
                    number = word[node]
                    if number >= 0 and best[start] + cost[number] < best[last + 1]:
                        best[last + 1] = best[start] + cost[number]
                        back[last + 1], chosen[last + 1] = start, number
            size, at = 0, length
            while at > 0:
                size += 1
                at = back[at]
            at, place = length, used + size
            while at > 0:
                place -= 1
                out[place] = chosen[at]
                at = back[at]
            used += size
            out[used] = -1
            used += 1
            begin += length
    return used


@inlined
def _is_han(point):
    """Return whether a code point is a Chinese character."""
    return 0x3400 <= point <= 0x9FFF or 0x20000 <= point <= 0x323AF
