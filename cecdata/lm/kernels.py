"""Numba kernels that fill the arrays of an n-gram table and look n-grams up in them.

A hash table is a power of two of 64-bit slots, each with a key above other bits; 0 is an empty one.
The upper bits of a key's hash number its first slot, and `shift` takes the others off. Where that
slot has another key, the next ones are tried. The marks of a table are a bitmap of its hashes, by
which most look-ups of keys that it lacks end at once: it is small enough for the processor's cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels import called, compiled, inlined, read_code_point

# 8 bits of a log-probability in natural logarithms: 0 to -20.4 in steps of 0.08
STEP, MOST = np.float32(0.08), 255
BYTE = np.uint64(8)
LOWER = np.uint64(255)
PAIR = np.uint64(16)  # bits of a bigram's slot below its words
_WORD = np.uint64(20)  # bits of a word in the key of an n-gram, the last word lowest
_POINT = np.uint64(21)  # bits of a code point in the key of an edge of a trie, below its node
EMPTY = np.uint64(0)
# Fibonacci hashing: the golden ratio of 2**64
FACTOR = np.uint64(0x9E3779B97F4A7C15)
MARKS = np.uint64(2)  # log2 of the marks for each slot
_SIX, _63 = np.uint64(6), np.uint64(63)
_LONGEST_RUN = 4000  # characters of a run that are cut at once
_UNKNOWN = -25.0  # log P of a character that is no word, where runs are cut


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
    """Return the marks of a hash table with `low` bits below each key."""
    marks = np.zeros((len(slots) << MARKS) >> 6, np.uint64)
    for slot in slots:
        if slot != EMPTY:
            bit = _mark_of_key(slot >> low, shift)
            marks[bit >> _SIX] |= np.uint64(1) << (bit & _63)
    return marks


@inlined
def _may_hold(marks, key, shift):
    """Return whether a key may be in the table with these marks."""
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
    shift = find_shift(len(slots))
    for n in range(len(pairs)):
        key = np.uint64(pairs[n, 0]) << _WORD | np.uint64(pairs[n, 1])
        low = np.uint64(log_prob[n]) << BYTE | np.uint64(backoff[n])
        slots[_find_slot(slots, key, PAIR, shift)] = key << PAIR | low


@compiled
def fill_trigrams(slots, bigrams, marks, triples, log_prob):
    """Put each trigram into its slot: its key above 8 bits of log P.

    Return the number of trigrams whose first two words are not a listed bigram.
    """
    shift = find_shift(len(slots))
    bigram_shift = find_shift(len(bigrams))
    lost = 0
    for n in range(len(triples)):
        first = find_bigram(bigrams, marks, bigram_shift, triples[n, 0], triples[n, 1])
        if first < 0:
            lost += 1
            continue
        key = _make_trigram_key(first, triples[n, 2])
        slots[_find_slot(slots, key, BYTE, shift)] = key << BYTE | np.uint64(log_prob[n])
    return lost


@inlined
def find_bigram(slots, marks, shift, left, right):
    """Return the index of the slot of a bigram, or -1 for one that is not listed."""
    key = np.uint64(left) << _WORD | np.uint64(right)
    slot = -1
    if _may_hold(marks, key, shift):
        at = _find_slot(slots, key, PAIR, shift)
        if slots[at] != EMPTY:
            slot = at
    return slot


@inlined
def find_trigram(slots, shift, first, word):
    """Return the 8-bit log P of a trigram whose bigram is in slot `first`, or -1 without one."""
    at = _find_slot(slots, _make_trigram_key(first, word), BYTE, shift)
    return np.int64(slots[at] & LOWER) if slots[at] != EMPTY else -1


@inlined
def _make_trigram_key(first, word):
    """Return the key of a trigram: the index of its bigram's slot, its third word; plus 1."""
    return (np.uint64(first) << _WORD | np.uint64(word)) + np.uint64(1)  # 0 is an empty slot


@compiled
def fill_trie(keys, nodes, word, used, points, bounds, numbers):
    """Add each text to a trie of `used` nodes, the root being 0; return how many it has then.

    Text n is points[bounds[n]:bounds[n + 1]], and its number numbers[n]: that becomes the number
    in the trie where the trie has the text already. `word` has the number of the text that ends at
    each node, or -1.
    """
    shift = find_shift(len(keys))
    for n in range(len(numbers)):
        node = 0
        for p in range(bounds[n], bounds[n + 1]):
            key = np.uint64(node) << _POINT | np.uint64(points[p])
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
def next_node(trie, node, point):
    """Return the node of a trie after this character, or -1; the root is 0."""
    key = np.uint64(node) << _POINT | np.uint64(point)
    child = -1
    if _may_hold(trie.edge_marks, key, trie.edge_shift):
        at = _find_slot(trie.edge_keys, key, EMPTY, trie.edge_shift)
        if trie.edge_keys[at] != EMPTY:
            child = trie.edge_nodes[at]
    return child


@compiled
def score_rows(data, bounds, tables, longest, nats):
    """Write log P of the Chinese characters of each UTF-8 text in nats.

    Each run of Chinese characters is cut into the words with the highest joint unigram probability.
    """
    for row in range(len(nats)):
        points = np.empty(bounds[row + 1] - bounds[row], np.int64)
        length = _read_points(data, bounds[row], bounds[row + 1], points)
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
            log_prob = tables.log_prob
            _find_words(
                points, first, last, tables, log_prob, log_prob[0], longest, best, size, number
            )
            nats[row] = _add_words(nats[row], first, last, tables, size, number)
            first = last


@inlined
def _read_points(data, begin, end, points):
    """Write the code points of data[begin:end], which is UTF-8; return their number."""
    length, at = 0, np.uint64(begin)
    while at < np.uint64(end):
        point, at = read_code_point(data, at)
        points[length] = np.int64(point)
        length += 1
    return length


@called
def _find_words(points, first, last, trie, log_prob, unknown, longest, best, size, number):
    """Write the likeliest words of points[first:last].

    `log_prob` is by word, and `unknown` that of a character which is no word, number 0. By the
    place at which a word ends: `best`, the log P of the words up to there, and the last of them,
    its `size` in characters and its `number`.
    """
    best[first] = 0.0
    for start in range(first, last):
        if best[start] + unknown > best[start + 1]:
            best[start + 1] = best[start] + unknown
            size[start + 1], number[start + 1] = 1, 0
        node = 0
        for stop in range(start, min(start + longest, last)):
            node = next_node(trie, node, points[stop])
            if node < 0:
                break
            word = trie.word[node]
            if word < 0:
                continue
            likely = best[start] + log_prob[word]
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
def cut_runs(points, offsets, trie, log_prob, longest, out):
    """Write the words of each sentence's runs of Han, -1 after a run; return the entries used.

    Sentence s is points[offsets[s]:offsets[s + 1]]; `log_prob` is by word.
    """
    best = np.empty(_LONGEST_RUN + 1, np.float32)
    size = np.empty(_LONGEST_RUN + 1, np.int64)
    number = np.empty(_LONGEST_RUN + 1, np.int64)
    used = 0
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
            best[: length + 1] = -np.inf
            _find_words(run, 0, length, trie, log_prob, _UNKNOWN, longest, best, size, number)
            first, at = used, length
            while at > 0:  # from the last word on
                out[used] = number[at]
                used += 1
                at -= size[at]
            out[first:used] = out[first:used][::-1].copy()
            out[used] = -1
            used += 1
            begin += length
    return used


@inlined
def _is_han(point):
    return 0x3400 <= point <= 0x9FFF or 0x20000 <= point <= 0x323AF
