"""The arrays and settings that the channel's kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST_CLAUSE = 48  # characters; a longer run of Han is cut there
MOST_EDGES = 6000  # of a clause before the first pass
MOST_KEPT = 160  # edited edges after it
MOST_WORD = 8  # characters of the longest word


class ChannelArrays(NamedTuple):
    """A channel for the kernel.

    `slot` [0x110000] is an observed character's row plus 1; row r is [bounds[r]:bounds[r + 1]] of
    `right` (code points) and `log_prob`. `span_keys` is a hash table of observed spans, whose rows
    lead to `span_words` (numbers of words) and `span_log_prob`. `word_points` [V, MOST_WORD] and
    `word_size` [V] are the texts of the n-gram model's words.
    """

    slot: NDArray[np.int32]
    bounds: NDArray[np.int64]
    right: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    span_keys: NDArray[np.uint64]
    span_rows: NDArray[np.int32]
    span_bounds: NDArray[np.int64]
    span_words: NDArray[np.int32]
    span_log_prob: NDArray[np.float32]
    word_points: NDArray[np.int32]
    word_size: NDArray[np.int32]


class Settings(NamedTuple):
    """The weights of the decoder; scores are natural logarithms."""

    channel: float = 1.0  # λ; 1 is Bayes' rule
    error: float = 3.0  # θ, for each error
    margin: float = 6.0  # an edited edge that loses more than this goes
    temperature: float = 2.0  # of the posteriors
    unknown: float = -8.0  # beside log P of the unknown word
    repeated: float = -3.0  # log P that a character is written twice


class Work(NamedTuple):
    """Scratch space for one clause."""

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    word: NDArray[np.int32]
    price: NDArray[np.float32]
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    chain: NDArray[np.int32]


def workspace() -> Work:
    """Return scratch space for `correct`, for one thread."""
    def integers() -> NDArray[np.int32]:
        return np.empty(MOST_EDGES, np.int32)

    def floats() -> NDArray[np.float32]:
        return np.empty(MOST_EDGES, np.float32)

    return Work(integers(), integers(), integers(), floats(), floats(), floats(), integers())
