"""Near-glyph replacement: a character for one that looks like it (未 → 末).

The paper's evaluation tells more-stroke from fewer-stroke errors; `equal_stroke` is the rest.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.shapes import shape_pairs, stroke_count
from cecdata.operators.base import CharConfusions, ConfusionSet, Operator, confusion_set, popularity

KINDS = ("more_stroke", "fewer_stroke", "equal_stroke")
# Below this similarity two characters share a part but are not mistaken for each other.
LEAST_SIMILARITY = 0.50
# People confuse characters that look very similar, so the weight is a high power of the similarity.
# A frequent character is written for a rare one more readily than the reverse.
SIMILARITY_POWER = 6
FREQUENCY_EXPONENT = 0.5
LEAST = 0.015  # minimum share of a character's weight; rarer confusions are left out


@cache
def _build(least: float) -> ConfusionSet:
    """Return look-alikes weighted by similarity; the difference in strokes gives the kind."""
    pairs = shape_pairs()
    strokes = np.array([stroke_count(sign) for sign in standard_characters()])
    difference = strokes[pairs.right] - strokes[pairs.left]
    kind = np.where(difference == 0, 2, np.where(difference > 0, 0, 1)).astype(np.int8)
    steep = np.multiply.reduce([pairs.similarity] * SIMILARITY_POWER)
    weight = steep * popularity(FREQUENCY_EXPONENT)[pairs.right]
    # with `least` = 0, pairs below the minimum similarity are kept as well
    weight = np.where((pairs.similarity >= LEAST_SIMILARITY) | (least == 0), weight, 0.0)
    return confusion_set(pairs.left, pairs.right, weight, kind, least)


OPERATOR = Operator("near_glyph", "substitute", 1, KINDS, CharConfusions(KINDS, _build, LEAST))
