"""The arrays and settings that the channel's kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST_CLAUSE = 48  # characters; a longer run of Han is cut there
MOST_WORD = 8  # characters of the longest word
MOST_KEPT = 160  # edited edges of a clause
MOST_EDGES = LONGEST_CLAUSE * (MOST_WORD + 3) + MOST_KEPT
MOST_STATES = 1 << 14  # pairs of adjacent edges
MOST_STEPS = 1 << 19  # triples of adjacent edges


class ChannelArrays(NamedTuple):
    """A channel for the kernel.

    `slot` [0x110000] is an observed character's row plus 1; row r is [bounds[r]:bounds[r + 1]] of
    `right` (code points) and `log_prob`. `span_keys` is a hash table of observed spans, whose rows
    lead to `span_words` (numbers of words) and `span_log_prob`. `repeated` is
    log P that a character is written twice. `word_points` [V, MOST_WORD] and
    `word_size` [V] are the texts of the n-gram model's words. `kinds` [0x10000]: see `names.kinds`.
    """

    slot: NDArray[np.int32]
    bounds: NDArray[np.int64]
    right: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    span_keys: NDArray[np.uint64]
    span_shift: np.uint64
    span_rows: NDArray[np.int32]
    span_bounds: NDArray[np.int64]
    span_words: NDArray[np.int32]
    span_log_prob: NDArray[np.float32]
    repeated: float
    word_points: NDArray[np.int32]
    word_size: NDArray[np.int32]
    kinds: NDArray[np.uint8]


class Settings(NamedTuple):
    """The weights of the decoder; scores are natural logarithms."""

    channel: float = 1.0  # λ; 1 is Bayes' rule
    error: float = 3.0  # θ, for each error
    margin: float = 6.0  # an edited edge that loses more than this is dropped
    temperature: float = 2.0  # of the posteriors
    unknown: float = -8.0  # added to log P of the unknown word
    name: float = -5.0  # log P that a word is a name
    title: float = 2.0  # further cost of an error in a title or a short quotation
    recurring: float = 2.0  # further cost of an error in two characters that recur


class Work(NamedTuple):
    """Scratch space of one call, used clause by clause; the kernels allocate nothing.

    By edge [MOST_EDGES]: `start`, `end`, `word` and `price`; `before` and `after`, the best scores
    of the words as written up to and with the edge, and after it; `chain`, another edge that ends
    at the same place; `low` and `states`, its first state and how many. `sorted` holds the edges by
    start. By place [LONGEST_CLAUSE + 1]: `first`, the first edge that starts there; `head`, the
    last one that ends there; `leading`, how many do; `ahead` and `rest`, bounds of the scores
    before and after it; `guard`, the further cost of an error.

    A state is an edge after another one: `entry` after `previous`. `slot` is the bigram of their
    words, `best` the score of the best path to it and `back` the state before it there; `forward`
    and `backward` are sums over all paths, relative to the best. `step` [MOST_STEPS] holds the
    chance of each step between states, relative to the best path. By edited edge [MOST_KEPT]:
    `share`, its posterior; `path`, whether it is on the best path.
    """

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    word: NDArray[np.int32]
    chain: NDArray[np.int32]
    low: NDArray[np.int32]
    states: NDArray[np.int32]
    sorted: NDArray[np.int32]
    price: NDArray[np.float32]
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    first: NDArray[np.int32]
    head: NDArray[np.int32]
    leading: NDArray[np.int32]
    ahead: NDArray[np.float32]
    rest: NDArray[np.float32]
    guard: NDArray[np.float32]
    entry: NDArray[np.int32]
    previous: NDArray[np.int32]
    back: NDArray[np.int32]
    slot: NDArray[np.int64]
    best: NDArray[np.float64]
    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    step: NDArray[np.float64]
    share: NDArray[np.float64]
    path: NDArray[np.uint8]


def workspace() -> Work:
    """Return scratch space for one call of `correct`, which runs without the interpreter's lock.

    Only memory that is written is ever mapped, so that a call pays for what it uses.
    """
    edge, place, state = MOST_EDGES, LONGEST_CLAUSE + 2, MOST_STATES
    kinds = (
        (7, edge, np.int32),
        (3, edge, np.float32),
        (3, place, np.int32),
        (3, place, np.float32),
        (3, state, np.int32),
        (1, state, np.int64),
        (3, state, np.float64),
        (1, MOST_STEPS, np.float64),
        (1, MOST_KEPT, np.float64),
        (1, MOST_KEPT, np.uint8),
    )
    return Work._make(np.empty(size, kind) for count, size, kind in kinds for _ in range(count))
