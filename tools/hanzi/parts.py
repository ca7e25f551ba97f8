"""The share of strokes that two characters have in common at the same place."""

from __future__ import annotations

import ids
import numpy as np
from numpy.typing import NDArray
from structure import Structure
from table_ids import ALONE

Floats = NDArray[np.float32]
# Factor of a match whose component sits one level deeper in the other character.
MOVED = 0.85
# 讠 and 言, 亻 and 人 are one component in two shapes.
SAME_ORIGIN = 0.5
DIRECTION = {"⿰": "⿰", "⿲": "⿰", "⿱": "⿱", "⿳": "⿱"}


class Matcher:
    """Matched strokes of two trees. Each node is numbered once; results are cached."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.parts: list[tuple[int, ...]] = []
        self.sizes: list[int] = []
        self.known: dict[tuple[int, int], float] = {}

    def number(self, node: ids.Node) -> int:
        """Return the number of a node; equal structures share one."""
        spelling = node.character or ids.canonical(node)
        if spelling not in self.numbers or spelling == ids.UNENCODED:
            parts = tuple(self.number(part) for part in ids.flat_parts(node))
            self.numbers[spelling] = len(self.names)
            self.names.append(spelling)
            self.kinds.append(DIRECTION.get(node.operator, node.operator))
            self.parts.append(parts)
            self.sizes.append(self.structure.size(node))
        return self.numbers[spelling]

    def similarity(self, left: int, right: int) -> float:
        """Return twice the matched strokes over the strokes of both, 0 to 1."""
        matched = self.matched(left, right)
        return min(1.0, 2 * matched / (self.sizes[left] + self.sizes[right]))

    def matched(self, left: int, right: int) -> float:
        """Return the strokes of the components that the two have in common, discounted."""
        if left == right:
            return float(self.sizes[left])
        key = (left, right) if left < right else (right, left)
        if key not in self.known:
            self.known[key] = self._matched(*key)
        return self.known[key]

    def _matched(self, left: int, right: int) -> float:
        if ALONE.get(self.names[left]) == self.names[right] or (
            ALONE.get(self.names[right]) == self.names[left]
        ):
            return SAME_ORIGIN * min(self.sizes[left], self.sizes[right])
        best = 0.0
        if self.parts[left] and self.parts[right] and self.kinds[left] == self.kinds[right]:
            best = self._aligned(self.parts[left], self.parts[right])
        inside = [self.matched(left, part) for part in self.parts[right]]
        inside += [self.matched(part, right) for part in self.parts[left]]
        return max(best, MOVED * max(inside, default=0.0))

    def _aligned(self, left: tuple[int, ...], right: tuple[int, ...]) -> float:
        """Return the strokes of the best matching of two lists of parts that keeps their order."""
        row = [0.0] * (len(right) + 1)
        for first in left:
            previous = row
            row = [0.0]
            for place, second in enumerate(right):
                both = previous[place] + self.matched(first, second)
                row.append(max(both, row[place], previous[place + 1]))
        return row[-1]


def overlap(matcher: Matcher, numbers: list[int]) -> Floats:
    """Return a rough first measure of all pairs: shared components, weighted by strokes."""
    columns: dict[int, int] = {}
    cells: list[tuple[int, int, float]] = []
    for row, number in enumerate(numbers):
        waiting, seen = [number], set()
        while waiting:
            node = waiting.pop()
            if node in seen or matcher.sizes[node] < 2:
                continue
            seen.add(node)
            column = columns.setdefault(node, len(columns))
            cells.append((row, column, matcher.sizes[node] ** 0.5))
            waiting.extend(matcher.parts[node])
    features = np.zeros((len(numbers), len(columns)), np.float32)
    for row, column, weight in cells:
        features[row, column] = weight
    features /= np.linalg.norm(features, axis=1, keepdims=True) + 1e-9
    shared: Floats = features @ features.T
    return shared
