"""The arithmetic of the encoder `builtin`.

It adds integer vectors, exact in any order: a sentence's sum is over its characters and its pairs
of neighbours, with a boundary at each end. The other operations are +, -, *, / and √ on float64,
which IEEE 754 rounds alike everywhere. So the score does not depend on machine, batch, shard or
order, nor on whether the source's sum is built from its text or from the target's sum and the
edits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels import compiled, decode, inlined

WIDTH = 64  # integers of a row: the vector, then the traits, which only the calibration reads
TRAITS = 8
SPAN = WIDTH - TRAITS
CHARACTERS = 8192  # rows of single characters; all rarer ones share the last `SHARED`
SHARED = 256
PAIRS = 32768  # rows of hashed neighbours
START, END = 2, 3  # code points that no text has; they stand for the two ends
HEADS = 7  # parts of the vector that the calibration also compares one by one
PART = SPAN // HEADS
FEATURES = 7 + 2 * HEADS + 2 * TRAITS
HIDDEN = (32, 16)
BLOCK = 64  # pairs that are calibrated at a time, independently of each other
STEP = 1024.0  # an integer is the weight times this


class Weights(NamedTuple):
    """The arrays that the kernels read."""

    rows: npt.NDArray[np.int16]  # [CHARACTERS + PAIRS, WIDTH]
    code_points: npt.NDArray[np.uint16]  # [0x110000] row of each code point
    first: npt.NDArray[np.float64]  # [FEATURES + 1, HIDDEN[0]]; the last row is the bias
    second: npt.NDArray[np.float64]  # [HIDDEN[0] + 1, HIDDEN[1]]
    third: npt.NDArray[np.float64]  # [HIDDEN[1] + 1]


@inlined
def _pair_row(left, right):
    h = np.uint64(left) * np.uint64(0x9E3779B97F4A7C15)
    h ^= np.uint64(right) * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return np.uint64(CHARACTERS) + ((h >> np.uint64(40)) & np.uint64(PAIRS - 1))


@inlined
def _add(total, rows, row):
    for d in range(WIDTH):
        total[d] += np.int32(rows[row, d])


@inlined
def _subtract(total, rows, row):
    for d in range(WIDTH):
        total[d] -= np.int32(rows[row, d])


@inlined
def _sum(points, n, weights, total):
    """Write the sum of the text's rows into `total`."""
    total[:] = 0
    left = np.uint32(START)
    for i in range(np.uint64(n)):
        right = points[i]
        _add(total, weights.rows, np.uint64(weights.code_points[np.uint64(right)]))
        _add(total, weights.rows, _pair_row(left, right))
        left = right
    _add(total, weights.rows, _pair_row(left, np.uint32(END)))


@inlined
def _features(target, n_target, source, n_source, features, i):
    """Write the calibration's inputs for two sums into features[:, i]; zeros for an empty text."""
    tt, ts, ss = np.int64(0), np.int64(0), np.int64(0)
    for h in range(HEADS):
        tt_h, ts_h, ss_h = np.int64(0), np.int64(0), np.int64(0)
        for d in range(h * PART, (h + 1) * PART):
            t, s = np.int64(target[d]), np.int64(source[d])
            tt_h += t * t
            ts_h += t * s
            ss_h += s * s
        sizes = np.sqrt(np.float64(tt_h)) * np.sqrt(np.float64(ss_h))
        features[7 + h, i] = np.float64(ts_h) / sizes if sizes > 0.0 else 0.0
        features[7 + HEADS + h, i] = np.float64(tt_h + ss_h - 2 * ts_h)
        tt += tt_h
        ts += ts_h
        ss += ss_h
    if tt == 0 or ss == 0 or n_target == 0 or n_source == 0:
        features[:, i] = 0.0
        return
    size_t, size_s = np.sqrt(np.float64(tt)), np.sqrt(np.float64(ss))
    n, m = np.float64(n_target), np.float64(n_source)
    cosine = np.float64(ts) / (size_t * size_s)
    features[0, i] = cosine
    features[1, i] = np.sqrt(max(0.0, 1.0 - cosine))
    features[2, i] = n / (n + 16.0)
    features[3, i] = m / (m + 16.0)
    features[4, i] = size_t / (n * STEP)
    features[5, i] = size_s / (size_t + size_s)
    features[6, i] = abs(m - n) / (m + n)
    for h in range(HEADS):
        features[7 + HEADS + h, i] /= np.float64(tt + ss)
    for d in range(TRAITS):
        mine = np.float64(target[SPAN + d]) / (n * STEP)
        features[7 + 2 * HEADS + d, i] = mine
        there = np.float64(source[SPAN + d]) / (m * STEP)
        features[7 + 2 * HEADS + TRAITS + d, i] = there - mine


@compiled
def _calibrate(features, count, weights, one, two, out, at):
    """Write predicted cosines into out[at:at + count]; the innermost loops run over the pairs."""
    for h in range(HIDDEN[0]):
        one[h, :] = weights.first[FEATURES, h]
        for f in range(FEATURES):
            by = weights.first[f, h]
            for i in range(BLOCK):
                one[h, i] += features[f, i] * by
        for i in range(BLOCK):
            one[h, i] = one[h, i] if one[h, i] > 0.0 else 0.0
    for k in range(HIDDEN[1]):
        two[k, :] = weights.second[HIDDEN[0], k]
        for h in range(HIDDEN[0]):
            by = weights.second[h, k]
            for i in range(BLOCK):
                two[k, i] += one[h, i] * by
        for i in range(BLOCK):
            two[k, i] = two[k, i] if two[k, i] > 0.0 else 0.0
    for i in range(count):
        total = 0.0
        if features[2, i] > 0.0:  # else a text was empty
            total = features[0, i] + weights.third[HIDDEN[1]]
            for k in range(HIDDEN[1]):
                total += two[k, i] * weights.third[k]
        out[at + i] = min(1.0, max(-1.0, total))


@compiled
def sums(offsets, data, longest, weights: Weights, out):
    """Write the sum of each text of an Arrow string array into `out`, [N, WIDTH] int32."""
    points = np.empty(longest + 1, np.uint32)
    for row in range(len(offsets) - 1):
        n = decode(data, offsets[row], offsets[row + 1], points)
        _sum(points, n, weights, out[row])


@compiled
def edited_scores(
    offsets,
    data,
    rows,
    longest,
    edit_offsets,
    starts,
    ends,
    replacements,
    texts,
    weights: Weights,
    out,
):
    """Write the score of each pair into `out`; the source's sum comes from the target's and edits.

    offsets, data: the distinct targets. rows [N]: the target of each pair; equal ones should be
    adjacent, because the sum of a target is reused. Edits of a pair: ascending, half-open, in code
    points of the target. replacements: the row of each edit in texts [T, 1 + L] uint32, which has
    the number of code points and then the code points.
    """
    points = np.empty(longest + 1, np.uint32)
    target, source = np.empty(WIDTH, np.int32), np.empty(WIDTH, np.int32)
    features = np.zeros((FEATURES, BLOCK))
    one, two = np.empty((HIDDEN[0], BLOCK)), np.empty((HIDDEN[1], BLOCK))
    held, n = -1, 0
    for pair in range(len(rows)):
        if rows[pair] != held:
            held = rows[pair]
            n = decode(data, offsets[held], offsets[held + 1], points)
            _sum(points, n, weights, target)
        source[:] = target
        m = n
        gone = -1  # the last pair of neighbours subtracted; pair j is before code point j
        last = np.uint32(START)
        stop = edit_offsets[pair + 1]
        for e in range(edit_offsets[pair], stop):
            start, end = starts[e], ends[e]
            for i in range(start, end):
                _subtract(source, weights.rows, np.uint64(weights.code_points[points[i]]))
            for j in range(max(start, gone + 1), end + 1):
                left = points[j - 1] if j > 0 else np.uint32(START)
                right = points[j] if j < n else np.uint32(END)
                _subtract(source, weights.rows, _pair_row(left, right))
            if start != gone:  # else the previous edit ended here, and `last` is what it wrote
                last = points[start - 1] if start > 0 else np.uint32(START)
            gone = end
            size = np.int64(texts[replacements[e], 0])
            for k in range(size):
                new = texts[replacements[e], 1 + k]
                _add(source, weights.rows, np.uint64(weights.code_points[new]))
                _add(source, weights.rows, _pair_row(last, new))
                last = new
            m += size - (end - start)
            if e + 1 == stop or starts[e + 1] != end:
                right = points[end] if end < n else np.uint32(END)
                _add(source, weights.rows, _pair_row(last, right))
        slot = pair % BLOCK
        _features(target, n, source, m, features, slot)
        if slot + 1 == BLOCK or pair + 1 == len(rows):
            _calibrate(features, slot + 1, weights, one, two, out, pair - slot)
