"""Alignment of two strings of code points: costs, operations, all cheapest paths.

Cell (i, j) of a grid is about writing source[:i] as target[:j]: the lowest cost of that, and the
last operations with which it costs so little. A transposition has a width: how many characters of
each string it puts into another order. A run is neighbouring operations that merge to one edit.

Costs are float64 and added in the published order, because ties are decided by `==`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels import compiled, mix

if TYPE_CHECKING:
    from cecbench.cherrant.costs import Attributes


MATCH, TRANSPOSE, SUBSTITUTE, INSERT, DELETE = 1, 2, 4, 8, 16
#: The lowest cost of a substitution; if even this is too much, the look-up is saved.
LEAST_SUBSTITUTION = 0.25
#: Beyond this difference of lengths only the first operation of each cell is followed.
ALL_PATHS_GAP = 10

Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Widths = NDArray[np.int16]
Floats = NDArray[np.float64]
#: cost, operations, widths, and the hashes of the code points of source and target
Grid = tuple[Floats, Bytes, Widths, NDArray[np.uint64], NDArray[np.uint64]]


@compiled
def _have_common_value(starts: Ints, values: Ints, a: int, b: int) -> bool:
    """Return whether rows a and b, values[starts[a] : starts[a + 1]], share a value."""
    for i in range(starts[a], starts[a + 1]):
        for j in range(starts[b], starts[b + 1]):
            if values[i] == values[j]:
                return True
    return False


@compiled
def _find_substitution_cost(a: int, b: int, table: Attributes) -> float:
    """Return the cost of writing character b for a; both are code points."""
    sem = table.unknown
    if table.classes[a] >= 0 and table.classes[b] >= 0:
        differ = table.classes[a] ^ table.classes[b]
        equal_levels = (differ & 0xFF == 0) + (differ & 0xFF00 == 0) + (differ & 0xFF0000 == 0)
        sem = (6 - 2 * equal_levels) / 6
    marks = (table.marks[a] & 1) + (table.marks[b] & 1)  # bit 0: punctuation, bit 1: Chinese
    kind = 0.0 if marks == 2 else (0.499 if marks == 1 else 0.25)
    form = 0.5
    if table.marks[a] & 2 and table.marks[b] & 2:
        key = (np.int64(a) << 32) + b
        at = np.searchsorted(table.confusable, key)
        is_confusable = at < table.confusable.size and table.confusable[at] == key
        if is_confusable or _have_common_value(table.reading_starts, table.readings, a, b):
            form = 0.0
    return sem + form + kind  # in this order, as published: sums are compared by `==`


@compiled
def _hash_number(number: int) -> np.uint64:
    """Return a hash of a code point by SplitMix64.

    Sums of these distinguish multisets; a collision is ruled out by a comparison.
    """
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    return mix(z)  # type: ignore[arg-type, return-value]


@compiled
def _have_same_characters(source: Ints, target: Ints, i: int, j: int, k: int) -> bool:
    """Return whether the k + 1 characters up to i and up to j are the same in any order."""
    left = np.sort(source[i - k : i + 1])
    right = np.sort(target[j - k : j + 1])
    return bool(np.all(left == right))


@compiled
def _fill_row(i: int, source: Ints, target: Ints, grid: Grid, table: Attributes) -> None:
    """Fill row i + 1 of the grid from the rows above it."""
    cost, operations, widths, source_hashes, target_hashes = grid
    for j in range(target.size):
        if source[i] == target[j]:
            cost[i + 1, j + 1] = cost[i, j]
            operations[i + 1, j + 1] = MATCH
            continue
        delete = cost[i, j + 1] + 1
        insert = cost[i + 1, j] + 1
        substitute = cost[i, j] + LEAST_SUBSTITUTION
        if substitute <= min(insert, delete):
            substitute = cost[i, j] + _find_substitution_cost(source[i], target[j], table)
        transpose = np.inf
        k = 1  # the last k + 1 characters may be transposed
        difference = source_hashes[i] - target_hashes[j]  # 0 if they have the same hashes
        # Back along the diagonal, while no step on it is free.
        while i >= k and j >= k and cost[i - k + 1, j - k + 1] != cost[i - k, j - k]:
            difference += source_hashes[i - k] - target_hashes[j - k]
            if difference == 0 and _have_same_characters(source, target, i, j, k):
                transpose = cost[i - k, j - k] + k
                break
            k += 1
        best = min(transpose, substitute, insert, delete)
        cost[i + 1, j + 1] = best
        bits = SUBSTITUTE * (substitute == best) | INSERT * (insert == best)
        if transpose == best:
            bits |= TRANSPOSE
            widths[i + 1, j + 1] = k + 1
        operations[i + 1, j + 1] = bits | DELETE * (delete == best)


@compiled
def fill_grid(source: Ints, target: Ints, table: Attributes) -> tuple[Bytes, Widths]:
    """Return the cheapest last operations of every cell, and the widths of transpositions.

    source, target: code points, shapes (n,) and (m,). Both results have the shape (n + 1, m + 1):
    a sum of MATCH … DELETE, which are bits, and a width, 0 if no transposition is cheapest.
    """
    n, m = source.size, target.size
    cost = np.zeros((n + 1, m + 1), dtype=np.float64)
    operations = np.zeros((n + 1, m + 1), dtype=np.uint8)
    widths = np.zeros((n + 1, m + 1), dtype=np.int16)
    source_hashes = np.array([_hash_number(number) for number in source])
    target_hashes = np.array([_hash_number(number) for number in target])
    cost[:, 0], cost[0] = np.arange(n + 1), np.arange(m + 1)
    operations[1:, 0], operations[0, 1:] = DELETE, INSERT
    grid = cost, operations, widths, source_hashes, target_hashes
    for i in range(n):
        _fill_row(i, source, target, grid, table)
    return operations, widths


@compiled
def _find_run_kind(kind: int, operation: int) -> int:
    """Return the kind of a run after an operation is added: that operation, or SUBSTITUTE if mixed.

    Insertions with deletions, INSERT | DELETE, are not merged, so that each of their orders counts.
    """
    if kind in (0, operation):
        return operation
    return SUBSTITUTE if (kind | operation) & SUBSTITUTE else INSERT | DELETE


@compiled
def _step_back(step: Ints, operation: int, width: int, i: int, j: int) -> tuple[int, int]:
    """Write the operation that ends in cell (i, j) to `step`; return the cell where it begins."""
    down = width if operation != INSERT else 0
    across = width if operation != DELETE else 0
    step[0] = operation
    step[1], step[2] = i - down, i
    step[3], step[4] = j - across, j
    return i - down, j - across


@compiled
def find_paths(
    operations: Bytes, widths: Widths, first_only: bool, limit: int
) -> tuple[Ints, Ints, bool]:
    """Return the cheapest paths, in the order T, S, I, D of their last operations.

    Of paths that differ only within a run, and so merge to the same edits, only the first is
    returned, because unlike texts have astronomically many. The search is depth-first, from the
    last cell back.

    The first result holds the steps of all paths, without matches, shape (steps, 5): operation,
    source start and end, target start and end. The second holds the number of steps of each path.
    The third is whether paths were left out because all have more than `limit` steps together.
    """
    n, m = operations.shape[0] - 1, operations.shape[1] - 1
    only_first = first_only or abs(n - m) > ALL_PATHS_GAP
    # for all that `limit` allows, of which only what is written takes memory
    steps = np.empty((max(limit, n + m), 5), dtype=np.int32)
    lengths = np.empty(limit + 1, dtype=np.int32)
    stack = np.empty((n + m + 2, 5), dtype=np.int32)  # a path's steps, from the end backwards
    # Of each cell where a step of the path ends: i, j, the operations that were not yet taken, and
    # the run before that step: its kind, as `_find_run_kind` has it, and its number.
    places = np.zeros((n + m + 2, 5), dtype=np.int32)
    # The last run that reached a cell as insertions, deletions or substitution.
    visited = np.zeros((n + 1, m + 1, 3), dtype=np.int32)
    used, count, depth = 0, 0, 0  # steps and paths that are found, steps of this path
    kind, run, newest = 0, 1, 1
    i, j, arriving = n, m, True
    while True:
        if arriving:  # in cell (i, j), by the first `depth` steps on the stack
            if operations[i, j] == MATCH:  # which ends a run
                newest += 1
                run, kind = newest, 0
            while operations[i, j] == MATCH:
                i, j = i - 1, j - 1
            if i == 0 and j == 0:  # the path is whole
                if count > 0 and used + depth > limit:
                    return steps[:used], lengths[:count], True
                for back in range(depth):
                    steps[used + back] = stack[depth - 1 - back]
                lengths[count] = depth
                used, count = used + depth, count + 1
                if only_first:
                    return steps[:used], lengths[:count], False
            else:
                place = places[depth]
                place[0], place[1], place[2] = i, j, operations[i, j]
                place[3], place[4] = kind, run
                depth += 1
        while depth > 0 and places[depth - 1, 2] == 0:  # back to where an operation remains
            depth -= 1
        if depth == 0:
            return steps[:used], lengths[:count], False
        i, j, bits, kind, run = places[depth - 1]
        operation = bits & -bits  # the lowest bit; the others remain
        places[depth - 1, 2] = bits & (bits - 1)
        width = widths[i, j] if operation == TRANSPOSE else 1
        i, j = _step_back(stack[depth - 1], operation, width, i, j)
        arriving = True
        if operation == TRANSPOSE:  # which merges with no other
            newest += 1
            run, kind = newest, 0
            continue
        kind = _find_run_kind(kind, operation)
        if kind != INSERT | DELETE:  # the run may have come here in another order already
            way = 0 if kind == INSERT else (1 if kind == DELETE else 2)
            arriving = visited[i, j, way] != run
            visited[i, j, way] = run
