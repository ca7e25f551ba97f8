"""Which character stands for which in words that sound the same: 权利 for 权力, 形式 for 形势."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.lexicon import LENGTHS, Words, words

# A person takes the frequent word by mistake, but less often than it is frequent.
COUNT_EXPONENT = 0.5
# Characters that hardly occur in words say little of what they are taken for.
LEAST_OCCURRENCES = 50


@cache
def word_pairs() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(key = right · characters + wrong, sorted; the chance of it where `right` is in a word).

    Each word is typed by its sound, and what the input method offers under that sound is taken
    with a chance that grows with the root of its count.
    """
    count = len(standard_characters())
    found = [_of_length(words(length)) for length in LENGTHS]
    keys, inverse = np.unique(np.concatenate([key for key, _ in found]), return_inverse=True)
    mass = np.bincount(inverse, np.concatenate([weight for _, weight in found]))
    occurrences = np.full(count, 0.0)
    for length in LENGTHS:
        listed = words(length)
        each = np.repeat(listed.counts, length)
        occurrences += np.bincount(listed.characters.ravel(), each, count)
    return keys, mass / np.maximum(occurrences[keys // count], LEAST_OCCURRENCES)


def same_sound(listed: Words) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """All ordered pairs of different words with the same syllables: (word, other, share).

    `share` is that of the other among all words of the sound, by the root of their counts.
    """
    base = int(listed.syllables.max()) + 1
    sound = np.zeros(len(listed.counts), np.int64)
    for column in listed.syllables.T:
        sound = sound * base + column
    order = np.argsort(sound, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(sound[order]) != 0])
    size = np.diff(np.r_[first, len(order)])
    root = np.sqrt(listed.counts[order])
    # every member of a group of n beside its n members
    beside = np.repeat(size, size)
    left = np.repeat(np.arange(len(order)), beside)
    begin = np.cumsum(beside) - beside
    right = np.repeat(first, size)[left] + np.arange(len(left)) - begin[left]
    total = np.repeat(np.add.reduceat(root, first), size)
    different = left != right
    left, right = left[different], right[different]
    return order[left], order[right], root[right] / total[right]


def _of_length(listed: Words) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    word, other, share = same_sound(listed)
    right, wrong = listed.characters[word], listed.characters[other]
    mass = np.broadcast_to((listed.counts[word] * share)[:, None], right.shape)
    key = right.astype(np.int64) * len(standard_characters()) + wrong
    changed = right != wrong
    return key[changed], mass[changed]
