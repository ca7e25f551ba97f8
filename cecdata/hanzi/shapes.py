"""Characters that look alike, and by how much.

Three measures between 0 and 1 are kept for every pair, so that a weight can be explained:

- ``glyph``: correlation of the blurred pictures in a printed and a handwritten typeface;
- ``parts``: share of strokes that belong to the same component at the same place;
- ``strokes``: edit similarity of the stroke sequences (横竖撇点折).

In the table, two digits of a neighbour are a measure in hundredths, 99 at most.

No one of them is enough: pictures miss 卓 桌, parts miss 鸟 乌, strokes miss 编 遍.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import code_point_slots, standard_characters, table

# The mean of the three measures says how alike two characters are overall; the greatest counts,
# too, because one likeness is enough to mislead the eye. Both have the same weight. The weights
# were chosen on classic look-alikes.
MEAN_WEIGHTS = (0.40, 0.35, 0.25)
PEAK_WEIGHTS = (1.0, 0.9, 0.8)
Floats = NDArray[np.float64]


def combine(glyph: Floats, parts: Floats, strokes: Floats) -> Floats:
    """Return one similarity from the three measures of each pair, 0 to 1.

    >>> combine(*np.full((3, 1), 0.9)).round(3).tolist()
    [0.9]
    """
    measures = (glyph, parts, strokes)
    mean = sum(w * value for w, value in zip(MEAN_WEIGHTS, measures, strict=True))
    peaks = [w * value for w, value in zip(PEAK_WEIGHTS, measures, strict=True)]
    return np.asarray(0.5 * (mean + np.maximum.reduce(peaks)))


@dataclass(frozen=True, slots=True)
class ShapePairs:
    """Every listed pair of look-alikes: [P] numbers of standard characters, by `left`."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    similarity: NDArray[np.float64]


@cache
def shape_pairs() -> ShapePairs:
    """Return the look-alikes of all characters at once."""
    lines = [table("shapes").get(sign, ("", "")) for sign in standard_characters()]
    points = np.frombuffer("".join(names for names, _ in lines).encode("utf-32-le"), np.uint32)
    digits = np.frombuffer("".join(codes for _, codes in lines).encode(), np.uint8) - ord("0")
    measures = (digits.reshape(-1, 3, 2) @ np.array([10, 1]) / 100).T
    return ShapePairs(
        left=np.repeat(np.arange(len(lines), dtype=np.int32), [len(names) for names, _ in lines]),
        right=code_point_slots()[points] - 1,
        similarity=combine(*measures),
    )


@cache
def look_alikes(character: str) -> Mapping[str, float]:
    """Return the standard characters that look like this one, most alike first, with how much.

    >>> list(look_alikes("己"))[:2], look_alikes("A")
    (['已', '巳'], {})
    """
    number, pairs, names = (
        code_point_slots()[ord(character)] - 1,
        shape_pairs(),
        standard_characters(),
    )
    first, last = np.searchsorted(pairs.left, [number, number + 1])
    others = [names[other] for other in pairs.right[first:last]]
    return dict(zip(others, pairs.similarity[first:last].tolist(), strict=True))


def similarity(left: str, right: str) -> float:
    """Return the symmetric similarity of two characters; 0.0 if neither lists the other.

    >>> similarity("未", "末") == similarity("末", "未") > 0.9
    True
    """
    if left == right:
        return 1.0
    listed = look_alikes(left).get(right)
    return listed if listed is not None else look_alikes(right).get(left, 0.0)


def strokes(character: str) -> str:
    """Return the strokes in writing order, 1 横 2 竖 3 撇 4 点 5 折; '' outside the standard list.

    >>> strokes("木")
    '1234'
    """
    row = table("characters").get(character)
    return row[2] if row else ""


def stroke_count(character: str) -> int:
    """Return the number of strokes; 0 outside the standard list."""
    return len(strokes(character))
