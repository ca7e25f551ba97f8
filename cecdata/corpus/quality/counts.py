"""The counts of a text's characters by class, for up to eight classes in one pass."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, code_point, string_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    import pyarrow as pa

MOST = 8  # classes in a pass: one byte each of 64 bits
_HEAD = 64  # most characters of `distinct`
_BITS = 8
_SURROGATES = (0xD800, 0xE000)

Lanes = npt.NDArray[np.uint64]


def counted(text: pa.Array, patterns: Sequence[str]) -> dict[str, Int32s]:
    """Return, for each pattern, the number of characters in each text that match it."""
    data, bounds = string_buffers(text)
    counts: dict[str, Int32s] = {}
    for first in range(0, len(patterns), MOST):
        some = tuple(patterns[first : first + MOST])
        numbers = np.zeros((MOST, len(text)), np.int32)
        _count(data, bounds, _lanes(some), numbers)
        counts.update(zip(some, numbers, strict=False))
    return counts


def distinct(text: pl.Series, head: int) -> tuple[Int32s, Int32s]:
    """Return how many of the first `head` characters are distinct, and how many there are."""
    assert head <= _HEAD
    column = text.to_arrow(compat_level=None).cast("string")
    data, bounds = string_buffers(column)
    different, length = np.zeros((2, len(column)), np.int32)
    _distinct(data, bounds, head, different, length)
    return different, length


@cache
def _lanes(patterns: tuple[str, ...]) -> Lanes:
    """Return, for each code point, a word with a 1 in the byte of each pattern that it matches."""
    import polars as pl

    low, high = _SURROGATES
    points = np.r_[0:low, high:0x110000]
    signs = pl.Series([chr(point) for point in points.tolist()])
    lanes = np.zeros(0x110000, np.uint64)
    for number, pattern in enumerate(patterns):
        held = signs.str.contains(f"(?s)^(?:{pattern})$").to_numpy()
        lanes[points[held]] |= np.uint64(1 << (_BITS * number))
    return lanes


@compiled
def _count(data: Bytes, bounds: Int32s, lanes: Lanes, numbers: npt.NDArray[np.int32]) -> None:
    for row in range(bounds.size - 1):
        at, stop = np.uint64(bounds[row]), np.uint64(bounds[row + 1])
        while at < stop:
            held = np.uint64(0)
            for _ in range(255):  # a byte can count no further
                if at >= stop:
                    break
                code, at = code_point(data, at)
                held += lanes[code]
            for lane in range(MOST):
                byte = held >> np.uint64(_BITS * lane) & np.uint64(255)
                numbers[lane, row] += np.int32(byte)


@compiled
def _distinct(
    data: Bytes,
    bounds: Int32s,
    head: int,
    different: npt.NDArray[np.int32],
    length: npt.NDArray[np.int32],
) -> None:
    seen = np.zeros(4 * _HEAD, np.int64)  # open addressing; a code point + 1
    for row in range(bounds.size - 1):
        at, stop = np.uint64(bounds[row]), np.uint64(bounds[row + 1])
        seen[:] = 0
        while at < stop and length[row] < head:
            code, at = code_point(data, at)
            length[row] += 1
            sign = np.int64(code) + 1
            place = ((sign * 0x9E3779B1) >> 16) % seen.size
            while seen[place] != 0 and seen[place] != sign:
                place = (place + 1) % seen.size
            different[row] += seen[place] == 0
            seen[place] = sign
