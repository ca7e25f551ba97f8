"""Characters that replace each other in words of the same sound: 权利 for 权力, 形式 for 形势."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.lexicon import LENGTHS, Words, words

# People take the more frequent word by mistake, but less often than in proportion to its frequency.
COUNT_EXPONENT = 0.5
# Characters that hardly occur in words say little about what is written for them.
LEAST_OCCURRENCES = 50


@cache
def word_pairs() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (key = right · characters + wrong, sorted; its chance where a word has `right`).

    Each word is typed by its sound, and a word that the input method offers for that sound is taken
    with a probability in proportion to the square root of its count.
    """
    count = len(standard_characters())
    parts = [_of_length(words(length)) for length in LENGTHS]
    keys, inverse = np.unique(np.concatenate([key for key, _ in parts]), return_inverse=True)
    mass = np.bincount(inverse, np.concatenate([weight for _, weight in parts]))
    occurrences = np.full(count, 0.0)
    for length in LENGTHS:
        listed = words(length)
        each = np.repeat(listed.counts, length)
        occurrences += np.bincount(listed.characters.ravel(), each, count)
    return keys, mass / np.maximum(occurrences[keys // count], LEAST_OCCURRENCES)


def beside(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all ordered pairs of different members of one group, by group.

    >>> [places.tolist() for places in beside(np.array([7, 3, 7]))]
    [[0, 2], [2, 0]]
    """
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
    size = np.diff(np.r_[first, len(order)])
    # pair every member of a group of n with all n members
    times = np.repeat(size, size)
    left = np.repeat(np.arange(len(order)), times)
    begin = np.cumsum(times) - times
    right = np.repeat(first, size)[left] + np.arange(len(left)) - begin[left]
    different = left != right
    return order[left[different]], order[right[different]]


def totals(group: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each member, the sum of the weights of its group."""
    _, inverse = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(inverse, weight)[inverse], np.float64)


def _of_length(listed: Words) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    base = int(listed.syllables.max()) + 1
    powers = base ** np.arange(listed.syllables.shape[1], dtype=np.int64)
    sound = listed.syllables.astype(np.int64) @ powers
    word, other = beside(sound)
    root = listed.counts**COUNT_EXPONENT
    share = root[other] / totals(sound, root)[other]
    right, wrong = listed.characters[word], listed.characters[other]
    mass = np.broadcast_to((listed.counts[word] * share)[:, None], right.shape)
    key = right.astype(np.int64) * len(standard_characters()) + wrong
    changed = right != wrong
    return key[changed], mass[changed]
