"""Pairs of neighbouring characters, computed from an n-gram model of words."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.lm.ngrams import load_shipped

Doubles = NDArray[np.float64]


@cache
def shipped_pairs() -> tuple[NDArray[np.int64], Doubles, Doubles]:
    """Return (key, P(pair), P(character)) of the model that ships.

    A key is first code point << 21 | second; keys are sorted. P(pair) is the expected number of its
    occurrences in a word of running text and across the boundary to the next word, P(character)
    [code points] that of the character; both are 0 if the model has not seen them.
    """
    model = load_shipped()
    words = model.words[1:]
    points = np.frombuffer("".join(words).encode("utf-32-le"), "<u4").astype(np.int64)
    lengths = np.array([len(word) for word in words])
    ends = np.cumsum(lengths)
    share = np.exp(model.word_log_prob.astype(np.float64))
    # inside words, then from the end of a word to the beginning of the next
    inside = np.delete(points[:-1] << 21 | points[1:], ends[:-1] - 1)
    weight = np.repeat(share[1:], lengths - 1)
    first = np.array([0, *points[ends - lengths]])
    last = np.array([0, *points[ends - 1]])
    left, right = model.pairs[:, 0], model.pairs[:, 1]
    across = last[left] << 21 | first[right]
    joint = share[left] * np.exp(model.pair_log_prob.astype(np.float64))
    known = (left > 0) & (right > 0)
    keys, place = np.unique(np.concatenate([inside, across[known]]), return_inverse=True)
    mass = np.bincount(place, np.concatenate([weight, joint[known]])).astype(np.float64)
    of_signs = np.bincount(points, np.repeat(share[1:], lengths), 0x110000)
    return keys, mass, of_signs.astype(np.float64)
