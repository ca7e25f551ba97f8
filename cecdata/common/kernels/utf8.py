"""UTF-8 in kernels: the one decoder, and the bytes of an Arrow array of strings.

The bytes must be valid UTF-8; this is not checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels.jit import inlined

if TYPE_CHECKING:
    import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Points = npt.NDArray[np.uint32]


def string_buffers(text: pa.Array) -> tuple[Bytes, Int32s]:
    """Return the bytes and the offsets of a string array without nulls; nothing is copied."""
    _, offsets, data = text.buffers()
    raw = np.frombuffer(data if data is not None and data.size else b"\0", dtype=np.uint8)
    bounds = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    # Arrow's buffers may be writable or not, and numba would compile a kernel for each case.
    raw.flags.writeable = bounds.flags.writeable = False
    return raw, bounds


@inlined
def code_point(data: Bytes, at: np.uint64) -> tuple[np.uint32, np.uint64]:
    """Return the code point that begins at a place, and the place after it.

    The places are unsigned, because numba checks a signed index for wraparound at every access.
    """
    one, six, low = np.uint64(1), np.uint32(6), np.uint32(0x3F)
    first = np.uint32(data[at])
    if first >= 0xE0:
        point = (np.uint32(data[at + one]) & low) << six
        point |= np.uint32(data[at + np.uint64(2)]) & low
        if first < 0xF0:
            point |= (first & np.uint32(0x0F)) << np.uint32(12)
            at += np.uint64(3)
        else:
            point = (point << six) | (np.uint32(data[at + np.uint64(3)]) & low)
            point |= (first & np.uint32(0x07)) << np.uint32(18)
            at += np.uint64(4)
    elif first < 0x80:
        point = first
        at += one
    else:
        point = (first & np.uint32(0x1F)) << six
        point |= np.uint32(data[at + one]) & low
        at += np.uint64(2)
    return point, at


@inlined
def decode(data: Bytes, start: int, stop: int, points: Points) -> np.int64:
    """Write the code points of data[start:stop] into `points`, and return their number."""
    n, at, end = np.uint64(0), np.uint64(start), np.uint64(stop)
    while at < end:
        points[n], at = code_point(data, at)
        n += np.uint64(1)
    return np.int64(n)
