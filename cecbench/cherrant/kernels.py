"""The alignment of two strings of character numbers: costs, operations, all cheapest paths.

Costs are float64 and added in the published order, because ties are decided by `==`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _F = TypeVar("_F", bound=Callable[..., object])

    def njit(*, cache: bool) -> Callable[[_F], _F]:
        """The decorator, for the type checker."""

else:
    from numba import njit

MATCH, TRANSPOSE, SUBSTITUTE, INSERT, DELETE = 1, 2, 4, 8, 16
#: No two characters cost less (equal classes and readings); spares the look-up in most cells.
LEAST_SUBSTITUTION = 0.25
#: Past this difference of lengths only the first operation of each cell is followed.
ALL_PATHS_GAP = 10

Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@njit(cache=True)
def _shares(starts: Ints, values: Ints, a: int, b: int) -> bool:
    for i in range(starts[a], starts[a + 1]):
        for j in range(starts[b], starts[b + 1]):
            if values[i] == values[j]:
                return True
    return False


@njit(cache=True)
def _equal_levels(starts: Ints, values: Ints, a: int, b: int) -> int:
    """The most equal levels over all pairs of classes; -1 where either has none."""
    best = -1
    for i in range(starts[a], starts[a + 1]):
        for j in range(starts[b], starts[b + 1]):
            differ = values[i] ^ values[j]
            equal = 0
            for shift in (0, 8, 16):
                if (differ >> shift) & 0xFF == 0:
                    equal += 1
            best = max(best, equal)
    return best


@njit(cache=True)
def _substitution(  # noqa: PLR0917 - kernels take arrays, not objects
    a: int,
    b: int,
    marks: Bytes,
    reading_starts: Ints,
    readings: Ints,
    class_starts: Ints,
    classes: Ints,
    confusable: NDArray[np.int64],
    unknown: float,
) -> float:
    levels = _equal_levels(class_starts, classes, a, b)
    chinese = marks[a] & 2 and marks[b] & 2
    sem = (6 - 2 * levels) / 6 if levels >= 0 else unknown
    punctuation = (marks[a] & 1) + (marks[b] & 1)
    kind = 0.0 if punctuation == 2 else (0.499 if punctuation == 1 else 0.25)
    form = 0.5
    if chinese:
        key = (np.int64(a) << 32) + b
        at = np.searchsorted(confusable, key)
        listed = at < confusable.size and confusable[at] == key
        if listed or _shares(reading_starts, readings, a, b):
            form = 0.0
    return sem + kind + form


@njit(cache=True)
def _scatter(number: int) -> np.uint64:
    # splitmix64: sums of these tell multisets apart but for a chance that is checked afterwards
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _same_characters(source: Ints, target: Ints, i: int, j: int, k: int) -> bool:
    left = np.sort(source[i - k : i + 1])
    right = np.sort(target[j - k : j + 1])
    return bool(np.all(left == right))


@njit(cache=True)
def fill(  # noqa: PLR0917 - kernels take arrays, not objects
    source: Ints,
    target: Ints,
    marks: Bytes,
    reading_starts: Ints,
    readings: Ints,
    class_starts: Ints,
    classes: Ints,
    confusable: NDArray[np.int64],
    unknown: float,
) -> tuple[Bytes, NDArray[np.int16]]:
    """Cheapest operations of every cell, as bits, and the width of its transposition.

    source, target: character numbers, shapes (n,), (m,). Gives operations, shape (n + 1, m + 1),
    bits MATCH … DELETE, and widths of the same shape, 0 where no transposition is cheapest.
    """
    n, m = source.size, target.size
    cost = np.zeros((n + 1, m + 1), dtype=np.float64)
    operations = np.zeros((n + 1, m + 1), dtype=np.uint8)
    widths = np.zeros((n + 1, m + 1), dtype=np.int16)
    left = np.array([_scatter(number) for number in source])
    right = np.array([_scatter(number) for number in target])
    for i in range(1, n + 1):
        cost[i, 0] = i
        operations[i, 0] = DELETE
    for j in range(1, m + 1):
        cost[0, j] = j
        operations[0, j] = INSERT
    for i in range(n):
        for j in range(m):
            if source[i] == target[j]:
                cost[i + 1, j + 1] = cost[i, j]
                operations[i + 1, j + 1] = MATCH
                continue
            delete = cost[i, j + 1] + 1
            insert = cost[i + 1, j] + 1
            substitute = cost[i, j] + LEAST_SUBSTITUTION
            if substitute <= min(insert, delete):
                substitute = cost[i, j] + _substitution(
                    source[i], target[j],
                    marks, reading_starts, readings, class_starts, classes, confusable,
                    unknown,
                )  # fmt: skip
            transpose = np.inf
            width = 0
            k = 1
            difference = left[i] - right[j]
            # Back along the diagonal, as long as no cell on it was a free step.
            while i >= k and j >= k and cost[i - k + 1, j - k + 1] != cost[i - k, j - k]:
                difference += left[i - k] - right[j - k]
                if difference == 0 and _same_characters(source, target, i, j, k):
                    transpose = cost[i - k, j - k] + k
                    width = k + 1
                    break
                k += 1
            best = min(transpose, substitute, insert, delete)
            cost[i + 1, j + 1] = best
            bits = 0
            if transpose == best:
                bits |= TRANSPOSE
                widths[i + 1, j + 1] = width
            if substitute == best:
                bits |= SUBSTITUTE
            if insert == best:
                bits |= INSERT
            if delete == best:
                bits |= DELETE
            operations[i + 1, j + 1] = bits
    return operations, widths


@njit(cache=True)
def _run_kind(kind: int, operation: int) -> int:
    """What a run merges to once an operation is added: the operation, or SUBSTITUTE if mixed.

    Insertions with deletions alone stay apart (their bits together): every order counts there.
    """
    together = kind | operation
    if together == operation:
        return operation
    return SUBSTITUTE if together & SUBSTITUTE else INSERT | DELETE


@njit(cache=True)
def paths(
    operations: Bytes, widths: NDArray[np.int16], first_only: bool, limit: int
) -> tuple[Ints, Ints, bool]:
    """The cheapest paths, last operation chosen first, in the order T, S, I, D.

    Of paths that merge to the same edits because they differ within one run alone only the first
    is given: unlike texts have astronomically many. Gives steps other than matches, shape
    (steps, 5): operation, source start and end, target start and end, each path from its beginning
    to its end; the number of steps of each path; and whether there were paths beyond `limit` steps
    in all, which are left out.
    """
    n, m = operations.shape[0] - 1, operations.shape[1] - 1
    only_first = first_only or abs(n - m) > ALL_PATHS_GAP
    steps = np.empty((64, 5), dtype=np.int32)
    lengths = np.empty(16, dtype=np.int32)
    used, found = 0, 0
    stack = np.empty((n + m + 2, 5), dtype=np.int32)  # a path's steps, from the end backwards
    open_bits = np.zeros(n + m + 2, dtype=np.uint8)  # operations of that place still to follow
    places = np.empty((n + m + 2, 2), dtype=np.int32)
    kinds = np.zeros(n + m + 2, dtype=np.int32)  # of the run so far, 0 at its beginning
    runs = np.zeros(n + m + 2, dtype=np.int32)  # number of the run that a place belongs to
    # The last run that came to a cell as insertions, deletions or substitution.
    visited = np.zeros((n + 1, m + 1, 3), dtype=np.int32)
    depth, kind, run, newest = 0, 0, 1, 1
    i, j = n, m
    arriving = True
    while True:
        if arriving:
            if operations[i, j] == MATCH:
                newest += 1
                run, kind = newest, 0
            while operations[i, j] == MATCH:
                i -= 1
                j -= 1
            if i == 0 and j == 0:
                if found > 0 and used + depth > limit:
                    return steps[:used], lengths[:found], True
                if used + depth > steps.shape[0]:
                    grown = np.empty((2 * (used + depth), 5), dtype=np.int32)
                    grown[:used] = steps[:used]
                    steps = grown
                for back in range(depth):
                    steps[used + back] = stack[depth - 1 - back]
                used += depth
                if found == lengths.size:
                    longer = np.empty(2 * found, dtype=np.int32)
                    longer[:found] = lengths
                    lengths = longer
                lengths[found] = depth
                found += 1
                if only_first:
                    return steps[:used], lengths[:found], False
            else:
                places[depth, 0] = i
                places[depth, 1] = j
                open_bits[depth] = operations[i, j]
                kinds[depth] = kind
                runs[depth] = run
                depth += 1
        while depth > 0 and open_bits[depth - 1] == 0:
            depth -= 1
        if depth == 0:
            return steps[:used], lengths[:found], False
        at = depth - 1
        i, j = places[at, 0], places[at, 1]
        bits = open_bits[at]
        operation = bits & -bits
        open_bits[at] = bits & (bits - 1)
        wide = widths[i, j] if operation == TRANSPOSE else 1
        down = wide if operation != INSERT else 0
        across = wide if operation != DELETE else 0
        stack[at, 0] = operation
        stack[at, 1] = i - down
        stack[at, 2] = i
        stack[at, 3] = j - across
        stack[at, 4] = j
        i -= down
        j -= across
        arriving = True
        if operation == TRANSPOSE:
            newest += 1
            run, kind = newest, 0
            continue
        run, kind = runs[at], _run_kind(kinds[at], operation)
        if kind != INSERT | DELETE:
            way = 0 if kind == INSERT else (1 if kind == DELETE else 2)
            arriving = visited[i, j, way] != run
            visited[i, j, way] = run
