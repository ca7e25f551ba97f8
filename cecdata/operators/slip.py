"""Slips within a word: its next character too soon (嘴唇 → 唇唇), or a word that comes to mind.

`lexical` writes the same characters in any context; here the word itself decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.lexicon import LENGTHS, Words, words
from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, SpanSet, span_set

KINDS = ("word_frame", "word_neighbour")
LEAST_COUNT = 200  # rarer words do not come to mind
COUNT_EXPONENT = 0.5  # a word that is a tenth as frequent comes to mind a third as often
FRAMES = 4  # most words that come to mind for each character left out
NEIGHBOUR = 0.6  # share of the kind word_neighbour; the rest is word_frame
Pair = tuple[str, str, float, int]


@cache
def _build() -> SpanSet:
    return span_set([pair for length in LENGTHS for pair in _pairs(words(length))])


def _pairs(listed: Words) -> Iterator[Pair]:
    common = np.flatnonzero(listed.counts >= LEAST_COUNT)
    texts = [listed.texts[position] for position in common]
    frames = [
        _frames(listed.characters[common], listed.counts[common], position)
        for position in range(listed.characters.shape[1])
    ]
    left, right = (np.concatenate(column) for column in zip(*frames, strict=True))
    weight = listed.counts[common][right] ** COUNT_EXPONENT
    total = np.bincount(left, weight, len(common))
    for one, other, share in zip(left, right, weight / total[left], strict=True):
        yield texts[one], texts[other], float(share) * (1 - NEIGHBOUR), 0
    for text in texts:
        slips = dict.fromkeys(_neighbours(text))
        for slip in slips:
            yield text, slip, NEIGHBOUR / len(slips), 1


def _frames(
    characters: NDArray[np.int32], counts: NDArray[np.float64], position: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (word, other): the most frequent other words that differ only at `position`."""
    rest = np.delete(characters, position, axis=1)
    _, frame = np.unique(rest, axis=0, return_inverse=True)
    order = np.lexsort((-counts, frame.ravel()))
    frame = frame.ravel()[order]
    first = np.searchsorted(frame, frame)  # of each word's frame
    rank = np.arange(FRAMES)
    right = first[:, None] + rank
    held = (right < len(frame)) & (right != np.arange(len(frame))[:, None])
    held &= frame[np.minimum(right, len(frame) - 1)] == frame[:, None]
    left = np.broadcast_to(np.arange(len(frame))[:, None], right.shape)[held]
    return order[left], order[right[held]]


def _neighbours(text: str) -> Iterator[str]:
    """Yield the word with one character overwritten by its left or right neighbour."""
    for i in range(len(text) - 1):
        if text[i] != text[i + 1]:
            yield text[: i + 1] + text[i] + text[i + 2 :]
            yield text[:i] + text[i + 1] + text[i + 1 :]


OPERATOR = Operator("slip", "rewrite", 1, KINDS, SpanConfusions(KINDS, _build))
