"""Walker's alias method: one draw picks a candidate by its weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels.jit import compiled


@compiled
def walker(
    bounds: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return Walker's alias tables of rows of weights: (probability of keeping j, alias of j).

    Row r is weights[bounds[r]:bounds[r + 1]]; the second array holds positions among all weights.

    >>> [column.tolist() for column in walker(np.array([0, 2]), np.array([1.0, 3.0]))]
    [[0.5, 1.0], [1, 1]]
    """
    keep, alias = np.ones(len(weights)), np.arange(len(weights))
    share, small, large = np.empty((3, len(weights)))
    for r in range(len(bounds) - 1):
        first, last = bounds[r], bounds[r + 1]
        total, less, more = 0.0, 0, 0
        for j in range(first, last):
            total += weights[j]
        for j in range(first, last):
            share[j] = weights[j] * (last - first) / total
            if share[j] < 1:
                small[less] = j
                less += 1
            else:
                large[more] = j
                more += 1
        while less and more:
            less -= 1
            poor, rich = int(small[less]), int(large[more - 1])
            keep[poor], alias[poor] = share[poor], rich
            share[rich] -= 1 - share[poor]
            if share[rich] < 1:
                more -= 1
                small[less] = rich
                less += 1
    return keep, alias
