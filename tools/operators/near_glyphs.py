"""The set of the operator `near_glyph`: characters that look alike."""

from __future__ import annotations

import numpy as np
from links import Confusions, likely, popularity

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.components import count_strokes, make_shape_pairs

# Below this similarity two characters share a part but are not mistaken for each other.
LEAST_SIMILARITY = 0.50
# People confuse characters that look very similar, so the weight is a high power of the similarity.
# A frequent character is written for a rare one more readily than the reverse.
SIMILARITY_POWER = 6
FREQUENCY_EXPONENT = 0.5
LEAST = 0.015  # minimum share of a character's weight; rarer confusions are left out


def build(least: float) -> Confusions:
    """Return look-alikes weighted by similarity; the difference in strokes gives the kind."""
    pairs = make_shape_pairs()
    strokes = np.array([count_strokes(sign) for sign in standard_characters()])
    difference = strokes[pairs.right] - strokes[pairs.left]
    kind = np.where(difference == 0, 2, np.where(difference > 0, 0, 1)).astype(np.int8)
    steep = np.multiply.reduce([pairs.similarity] * SIMILARITY_POWER)
    weight = steep * popularity(FREQUENCY_EXPONENT)[pairs.right]
    # with `least` = 0, pairs below the minimum similarity are kept as well
    weight = np.where((pairs.similarity >= LEAST_SIMILARITY) | (least == 0), weight, 0.0)
    return likely(pairs.left, pairs.right, weight, kind, least)
