"""Near-glyph replacement: a character for one that looks like it (未 → 末).

The paper's evaluation tells more-stroke from fewer-stroke errors; `equal_stroke` is the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import frequency
from cecdata.hanzi.shapes import LookAlike, look_alikes
from cecdata.operators.base import Confusion, Operator, strongest

# Below this similarity two characters share a part but are not mistaken for each other.
LEAST_SIMILARITY = 0.50
# The eye errs where the likeness is great: the weight falls steeply with the similarity, and a
# frequent character is written for a rare one more readily than the reverse.
SIMILARITY_EXPONENT = 6.0
FREQUENCY_EXPONENT = 0.3
LIMIT = 24


def confusions(character: str) -> Iterator[Confusion]:
    """Look-alikes by measured similarity, the kind from the difference in strokes."""
    found = {
        other.character: Confusion(character, other.character, _weight(other), _kind(other))
        for other in look_alikes(character)
        if other.similarity >= LEAST_SIMILARITY
    }
    yield from strongest(found, LIMIT)


def _weight(other: LookAlike) -> float:
    return float(
        other.similarity**SIMILARITY_EXPONENT * frequency(other.character) ** FREQUENCY_EXPONENT
    )


def _kind(other: LookAlike) -> str:
    if other.stroke_difference == 0:
        return "equal_stroke"
    return "more_stroke" if other.stroke_difference > 0 else "fewer_stroke"


OPERATOR = Operator(
    "near_glyph", "substitute", 1, ("more_stroke", "fewer_stroke", "equal_stroke"), confusions
)
