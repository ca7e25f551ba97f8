"""Pairs of neighbouring characters, computed from an n-gram model of words."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.lm.ngrams import shipped

Doubles = NDArray[np.float64]


@cache
def shipped_pairs() -> tuple[NDArray[np.int64], Doubles, Doubles]:
    """Return (key, P(pair), P(character)) of the model that ships.

    A key is first code point << 21 | second; keys are sorted. P(pair) is the expected number of its
    occurrences in a word of running text and across the boundary to the next word, P(character)
    [code points] that of the character; both are 0 if the model has not seen them.
    """
    model = shipped()
    points = [np.array([ord(sign) for sign in word], np.int64) for word in model.words[1:]]
    share = np.exp(model.word_log_prob.astype(np.float64))
    # inside words, then from the end of a word to the beginning of the next
    inside = np.concatenate([signs[:-1] << 21 | signs[1:] for signs in points])
    weight = np.repeat(share[1:], [len(signs) - 1 for signs in points])
    first = np.array([0, *(signs[0] for signs in points)])
    last = np.array([0, *(signs[-1] for signs in points)])
    left, right = model.pairs[:, 0], model.pairs[:, 1]
    across = last[left] << 21 | first[right]
    joint = share[left] * np.exp(model.pair_log_prob.astype(np.float64))
    known = (left > 0) & (right > 0)
    keys, place = np.unique(np.concatenate([inside, across[known]]), return_inverse=True)
    mass = np.bincount(place, np.concatenate([weight, joint[known]])).astype(np.float64)
    lengths = [len(signs) for signs in points]
    of_signs = np.bincount(np.concatenate(points), np.repeat(share[1:], lengths), 0x110000)
    return keys, mass, of_signs.astype(np.float64)
