"""How characters look: those that look alike, their components, those one component apart.

Three measures between 0 and 1 are kept for every pair of look-alikes, so that a weight can be
explained:

- ``glyph``: correlation of the blurred pictures in a printed and a handwritten typeface;
- ``parts``: share of strokes that belong to the same component at the same place;
- ``find_strokes``: edit similarity of the stroke sequences (横竖撇点折).

In the table, two digits of a neighbour are a measure in hundredths, 99 at most. No one of them is
enough: pictures miss 卓 桌, parts miss 鸟 乌, strokes miss 编 遍.

An Ideographic Description Sequence writes a character as an operator followed by its parts: 请 =
``⿰讠青``. A part may itself be a sequence. ``？`` is a part that has no code point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import make_slots, read_rows, read_table, standard_characters

UNENCODED = "？"
ARITY = {"⿲": 3, "⿳": 3, "⿾": 1, "⿿": 1, "㇯": 2}
ARITY.update(dict.fromkeys("⿰⿱⿴⿵⿶⿷⿸⿹⿺⿻⿼⿽", 2))

# Ideographic description characters: left to right, and surround from lower left (走召 for 超).
BESIDE, UNDERLINED = "⿰", "⿺"
# A person spells out a part in the form that it has alone (水 for 氵), a scanner in the form that
# is drawn. The forms of these parts look alike.
_KEPT_LOOK = {"讠": "言", "钅": "金", "饣": "食", "⻊": "足", "𧾷": "足", "𤣩": "王", "攵": "文"}
# The mean of the three measures says how alike two characters are overall; the greatest counts,
# too, because one likeness is enough to mislead the eye. Both have the same weight. The weights
# were chosen on classic look-alikes.
MEAN_WEIGHTS = (0.40, 0.35, 0.25)
PEAK_WEIGHTS = (1.0, 0.9, 0.8)
Floats = NDArray[np.float64]


def combine_similarities(glyph: Floats, parts: Floats, strokes: Floats) -> Floats:
    """Return one similarity from the three measures of each pair, 0 to 1."""
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
def make_shape_pairs() -> ShapePairs:
    """Return the look-alikes of all characters at once."""
    # of each character: the look-alikes, and six digits for each of these
    lines = [read_table("shapes").get(sign, ("", "")) for sign in standard_characters()]
    points = np.frombuffer("".join(names for names, _ in lines).encode("utf-32-le"), np.uint32)
    digits = np.frombuffer("".join(codes for _, codes in lines).encode(), np.uint8) - ord("0")
    measures = (digits.reshape(-1, 3, 2) @ np.array([10, 1]) / 100).T
    return ShapePairs(
        left=np.repeat(np.arange(len(lines), dtype=np.int32), [len(names) for names, _ in lines]),
        right=make_slots()[points] - 1,
        similarity=combine_similarities(*measures),
    )


@cache
def look_alikes(character: str) -> Mapping[str, float]:
    """Return the standard characters that look like this one, most alike first, with how much.

    >>> list(look_alikes("己"))[:2], look_alikes("A")
    (['已', '巳'], {})
    """
    pairs, names = make_shape_pairs(), standard_characters()
    number = make_slots()[ord(character)] - 1
    first, last = np.searchsorted(pairs.left, [number, number + 1])
    others = [names[place] for place in pairs.right[first:last]]
    return dict(zip(others, pairs.similarity[first:last].tolist(), strict=True))


def measure_similarity(left: str, right: str) -> float:
    """Return the symmetric similarity of two characters; 0.0 if neither lists the other."""
    if left == right:
        return 1.0
    listed = look_alikes(left).get(right)
    return listed if listed is not None else look_alikes(right).get(left, 0.0)


def find_strokes(character: str) -> str:
    """Return the strokes in order, 1 横 2 竖 3 撇 4 点 5 折; '' outside the standard list."""
    _, _, strokes, *_ = read_table("characters").get(character, ("", "", ""))
    return strokes


def count_strokes(character: str) -> int:
    """Return the number of strokes; 0 outside the standard list."""
    return len(find_strokes(character))


@dataclass(frozen=True, slots=True)
class Split:
    """A character written as its parts, and how plausible that is: a weight up to 1."""

    parts: str
    weight: float


def find_ids(character: str) -> str:
    """Return the IDS of the character's mainland form, or the character itself without parts.

    >>> find_ids("请")
    '⿰讠青'
    """
    row = read_table("ids").get(character)
    return row[0] if row else character


@cache
def _list_splits_by_character() -> dict[str, tuple[Split, ...]]:
    """Return the ways to split each character, the most plausible first."""
    by_character: dict[str, list[Split]] = defaultdict(list)
    for character, parts, _, weight in read_rows("splits"):
        by_character[character].append(Split(parts, float(weight)))
    return {character: tuple(splits) for character, splits in by_character.items()}


def list_splits(character: str) -> tuple[Split, ...]:
    """Return ways to write the character as two or three others, the most plausible first."""
    return _list_splits_by_character().get(character, ())


def list_deletions(character: str) -> tuple[str, ...]:
    """Return standard characters that are this one with a component dropped, most strokes first."""
    row = read_table("drops").get(character)
    return tuple(row[0]) if row else ()


def list_exchanges(character: str) -> tuple[str, ...]:
    """Return standard characters with one component exchanged, by code point: 请 → 清情晴睛."""
    row = read_table("exchanges").get(character)
    return tuple(row[0]) if row else ()


def find_two_parts(character: str) -> tuple[str, tuple[str, ...]]:
    """Return (BESIDE or UNDERLINED, the two parts as drawn); ("", ()) for other characters.

    A part without a code point is ''.

    >>> find_two_parts("法"), find_two_parts("超"), find_two_parts("花")
    (('⿰', ('氵', '去')), ('⿺', ('走', '召')), ('', ()))
    """
    ids = find_ids(character)
    if ids[0] not in (BESIDE, UNDERLINED):
        return "", ()
    middle = _find_part_end(ids, 1)
    return ids[0], tuple(part if len(part) == 1 else "" for part in (ids[1:middle], ids[middle:]))


def _find_part_end(ids: str, start: int) -> int:
    """Return where the part of an IDS that begins at `start` ends."""
    end = start + 1
    for _ in range(ARITY.get(ids[start], 0)):
        end = _find_part_end(ids, end)
    return end


def look_like(parts: str, written: tuple[str, ...]) -> bool:
    """Return whether two characters look like the parts as drawn."""
    pairs = zip(parts, written, strict=True)
    return all(part == _KEPT_LOOK.get(sign, sign) for part, sign in pairs)
