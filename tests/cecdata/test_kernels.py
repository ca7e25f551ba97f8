"""The decoder and the mixer of all kernels, against Python's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.kernels.jit import compiled, mix, splitmix64
from cecdata.common.kernels.utf8 import decode, string_buffers

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@compiled
def _points(data, offsets, points):
    n = 0
    for row in range(len(offsets) - 1):
        n += decode(data, offsets[row], offsets[row + 1], points[n:])
    return n


@compiled
def _mixed(values, mixed):
    for i in range(len(values)):
        mixed[i] = mix(values[i])


@given(st.lists(TEXT, min_size=1, max_size=5), st.integers(0, 4))
@settings(deadline=None)  # the first call compiles
def test_code_points_are_those_of_python(texts, start):
    """Every text of an array, and of a slice of it, is decoded to its code points."""
    array = pa.array(texts, pa.string()).slice(min(start, len(texts) - 1))
    data, offsets = string_buffers(array)
    points = np.zeros(sum(map(len, texts)) + 1, np.uint32)
    count = _points(data, offsets, points)
    assert points[:count].tolist() == [ord(c) for text in array.to_pylist() for c in text]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
@settings(deadline=None)
def test_splitmix64_is_the_published_one(values):
    """Arrays and kernels mix as Steele, Lea and Flood's code does on unbounded integers."""

    def slow(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    array = np.array(values, np.uint64)
    mixed = np.empty_like(array)
    _mixed(array, mixed)
    assert mixed.tolist() == splitmix64(array).tolist() == [slow(value) for value in values]
