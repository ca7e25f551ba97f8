"""Random draws that are pure functions of (seed, id, copy, purpose, index).

A draw is the finaliser of SplitMix64 over a counter, so that order, sharding, workers and restarts
change no row.
"""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import inlined
from cecdata.common.kernels.mix import mix

# What a draw is for. A new purpose takes a new number; a used one is never taken again.
UNCHANGED, OPERATOR, COUNT, PLACE, REPLACEMENT, MIXED, MIXED_OPERATOR, SAMPLE = range(8)
PROPOSAL, CHOICE = 8, 9


@inlined
def key_of(seed, identity, copy):
    """Return the key of a pair's draws."""
    first = mix(np.uint64(identity) ^ mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)))
    return mix(first + (np.uint64(copy) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03))


@inlined
def draw(key, purpose, index):
    """Return a uniform word of 64 bits."""
    counter = (np.uint64(purpose) << np.uint64(32)) + np.uint64(index) + np.uint64(1)
    return mix(key + counter * np.uint64(0x9E3779B97F4A7C15))


@inlined
def below(word, n):
    """Return a number 0..n - 1."""
    # Lemire's multiply-shift on the upper 32 bits; its bias of n / 2**32 is far below anything seen
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inlined
def unit(word):
    """Return a fraction in [0, 1)."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)
