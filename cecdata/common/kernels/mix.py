"""The finaliser of SplitMix64, for kernels and for NumPy arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels.jit import inlined

Uint64s = npt.NDArray[np.uint64]


def splitmix64(values: Uint64s) -> Uint64s:
    """Mix each value's bits (Steele, Lea and Flood 2014, the finaliser of `nextLong`).

    >>> [hex(value) for value in splitmix64(np.array([1, 2], np.uint64))]
    ['0x5692161d100b05e5', '0xdbd238973a2b148a']
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


mix = inlined(splitmix64)  # of one uint64, in kernels
