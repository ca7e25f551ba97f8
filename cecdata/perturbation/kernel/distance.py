"""Levenshtein distance of several edits, where it is not the sum of their costs."""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import called, inlined


@inlined
def is_new(points, n, facts):
    """Return whether the target holds no character of a text, given its row of `Tables.texts`."""
    first = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
    second = np.uint32(facts >> np.uint64(32))
    held = _occurs(points, n, first)
    if second:
        held |= _occurs(points, n, second)
    return not held


@inlined
def _occurs(points, n, wanted):
    occurs = np.uint32(0)
    for i in range(np.uint64(n)):  # without an early exit the compiler vectorises it
        occurs |= np.uint32(points[i] == wanted)
    return occurs != 0


@called
def distance_of(out, first, last, tables, bound, room):
    """Return the distance of edits first..last - 1 of one pair, known to be at most `bound`."""
    start, end = np.int64(out.start[first]), np.int64(out.end[last - 1])
    length = _rebuild(start, out, first, last, tables, room)
    # source and target are equal before the first edit and after the last
    return _banded(start, end - start, length, bound, room)


@inlined
def _rebuild(start, out, first, last, tables, room):
    """Write the source's code points from the first to the last edit; return their number."""
    points, written = room.points, room.written
    length, done, singles = 0, start, len(tables.texts)
    for e in range(first, last):
        for i in range(done, out.start[e]):
            written[length] = points[i]
            length += 1
        own = out.new[e] - singles
        if own >= 0:
            for j in range(tables.spans.points.shape[1]):
                if tables.spans.points[own, j]:
                    written[length] = tables.spans.points[own, j]
                    length += 1
        else:
            facts = tables.texts[out.new[e], 1]
            written[length] = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
            written[length + 1] = np.uint32(facts >> np.uint64(32))
            length += np.int64(written[length] != 0) + np.int64(written[length + 1] != 0)
        done = out.end[e]
    return length


@inlined
def _banded(start, n, m, bound, room):
    """Return the distance of points[start:start + n] and written[:m], at most `bound`."""
    left, right, previous, current = room.points, room.written, room.previous, room.current
    far = bound + 1
    for j in range(m + 1):
        previous[j] = j if j <= bound else far
    for i in range(1, n + 1):
        low, high = max(1, i - bound), min(m, i + bound)
        current[low - 1] = i if low == 1 and i <= bound else far
        for j in range(low, high + 1):
            best = previous[j - 1] + (left[start + i - 1] != right[j - 1])
            if j < i + bound and previous[j] + 1 < best:
                best = previous[j] + 1
            if current[j - 1] + 1 < best:
                best = current[j - 1] + 1
            current[j] = best
        for j in range(low - 1, high + 1):
            previous[j] = current[j]
        if high < m:
            previous[high + 1] = far
    return previous[m]
