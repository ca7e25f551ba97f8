"""Look-ups in the arrays of an n-gram table, compiled by numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels.jit import compiled, inlined

# 12 bits of a log-probability in natural logarithms: 0 to -20.475 in steps of 0.005
STEP = np.float32(0.005)
MOST = 4095
EMPTY = np.uint64(0)
# Fibonacci hashing: the golden ratio of 2**64
FACTOR = np.uint64(0x9E3779B97F4A7C15)


def quantise(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return log-probabilities or back-offs [N] as 12-bit steps; positive back-offs become 0."""
    return np.asarray(np.clip(np.rint(-values / STEP), 0, MOST), np.uint16)


def restored(steps: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return the log-probabilities of 12-bit steps."""
    return np.asarray(-STEP * steps.astype(np.float32), np.float32)


@inlined
def place_of(key, mask, shift):
    return np.int64((key * FACTOR) >> shift) & mask


@compiled
def shift_of(size):
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return np.uint64(64 - bits)


@compiled
def fill_bigrams(slots, pairs, log_prob, backoff):
    """Put each bigram into its slot: 40 bits of words plus one, then log P and back-off."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for n in range(len(pairs)):
        key = np.uint64(pairs[n, 0]) << np.uint64(20) | np.uint64(pairs[n, 1])
        at = place_of(key, mask, shift)
        while slots[at] != EMPTY:
            at = (at + 1) & mask
        low = np.uint64(log_prob[n]) << np.uint64(12) | np.uint64(backoff[n])
        slots[at] = key << np.uint64(24) | low


@compiled
def fill_trigrams(slots, bigrams, triples, log_prob):
    """Put each trigram into its slot: the bigram's slot and the third word; count the lost."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    two_mask, two_shift = len(bigrams) - 1, shift_of(len(bigrams))
    lost = 0
    for n in range(len(triples)):
        first = find_bigram(bigrams, two_mask, two_shift, triples[n, 0], triples[n, 1])
        if first < 0:
            lost += 1
            continue
        key = np.uint64(first) << np.uint64(20) | np.uint64(triples[n, 2])
        at = place_of(key, mask, shift)
        while slots[at] != EMPTY:
            at = (at + 1) & mask
        slots[at] = (key + np.uint64(1)) << np.uint64(12) | np.uint64(log_prob[n])
    return lost


@inlined
def find_bigram(slots, mask, shift, left, right):
    """The slot of a bigram, or -1."""
    key = np.uint64(left) << np.uint64(20) | np.uint64(right)
    at = place_of(key, mask, shift)
    found = -1
    while True:
        held = slots[at]
        if held == EMPTY:
            break
        if held >> np.uint64(24) == key:
            found = at
            break
        at = (at + 1) & mask
    return found


@inlined
def find_trigram(slots, mask, shift, first, word):
    """The 12-bit log P of a trigram whose bigram is in slot `first`, or -1."""
    key = np.uint64(first) << np.uint64(20) | np.uint64(word)
    at = place_of(key, mask, shift)
    wanted = key + np.uint64(1)
    found = -1
    while True:
        held = slots[at]
        if held == EMPTY:
            break
        if held >> np.uint64(12) == wanted:
            found = np.int64(held & np.uint64(4095))
            break
        at = (at + 1) & mask
    return found


@compiled
def fill_trie(keys, nodes, word, points, bounds, numbers):
    """Add each text to the trie; return the number of nodes, the root being 0."""
    mask, shift = len(keys) - 1, shift_of(len(keys))
    used = 1
    for n in range(len(numbers)):
        node = 0
        for p in range(bounds[n], bounds[n + 1]):
            key = np.uint64(node) << np.uint64(21) | np.uint64(points[p])
            at = place_of(key, mask, shift)
            while keys[at] != EMPTY and keys[at] != key:
                at = (at + 1) & mask
            if keys[at] == EMPTY:
                keys[at] = key
                nodes[at] = used
                used += 1
            node = nodes[at]
        word[node] = numbers[n]
    return used


@inlined
def child(keys, nodes, mask, shift, node, point):
    """The node after this character, or -1."""
    key = np.uint64(node) << np.uint64(21) | np.uint64(point)
    at = place_of(key, mask, shift)
    found = -1
    while True:
        held = keys[at]
        if held == EMPTY:
            break
        if held == key:
            found = nodes[at]
            break
        at = (at + 1) & mask
    return found
