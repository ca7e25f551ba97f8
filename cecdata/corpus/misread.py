"""Texts that were decoded wrongly, found by stretches of characters that nobody writes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, code_point, string_buffers
from cecdata.corpus.encodings import Weights, weights

_BAD_STRETCH = -20.0  # nats of Han characters in a row that were decoded wrongly


def decoded_wrongly(text: pa.Array) -> npt.NDArray[np.bool_]:
    """Return whether each text has a stretch of so rare characters that it was decoded wrongly.

    A byte that is missing shifts the bytes after it, and the rest of the line may still be valid.
    """
    data, offsets = string_buffers(text)
    worst = np.zeros(len(text), np.float32)
    _weigh(data, offsets, weights(), worst)
    return worst < _BAD_STRETCH


@compiled
def _weigh(data: Bytes, offsets: Int32s, table: Weights, worst: Weights) -> None:
    """Write the lowest sum of the weights of Han characters in a row."""
    for row in range(worst.size):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        run = np.float32(0.0)
        while at < end:
            code, at = code_point(data, at)
            if 0x3400 <= code < 0xA000:
                run = min(np.float32(0.0), run + table[code])
                worst[row] = min(worst[row], run)
            elif 0x40 <= code < 0x7F:  # may have been the second byte of a character
                worst[row] = min(worst[row], 2 * run)
