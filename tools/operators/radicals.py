"""The set of the operator `radical`: characters that are one component apart."""

from __future__ import annotations

import numpy as np
from links import Confusions, Links, Weights, likely, looked_up, one_part_apart, popularity
from sounds import spoken

from cecdata.hanzi.characters import read_table, standard_characters
from cecdata.hanzi.components import count_strokes, make_shape_pairs
from cecdata.operators.simple import RADICAL

FREQUENCY_EXPONENT = 0.5  # a frequent character is written for a rare one more readily
# The weight has the similarity to this power. A pair without a listed similarity has HEARD if its
# characters sound the same (间 简), because their common part is phonetic, and else 0 (年 旅).
SIMILARITY_POWER, HEARD = 3, 0.4
# Nobody writes 水 for 没 or 茬 for 在: an error keeps the larger part, which is not a bare radical,
# and gives one of the 3,500 characters of level 1 of the standard list. Of 200 errors read by eye,
# hardly any other error was judged likely (experiments/reading).
LEAST_KEPT, COMMON = 0.5, 1
LEAST = 0.01  # minimum share of a character's weight; rarer confusions are left out


def build(least: float) -> Confusions:
    """Return the standard characters one component away, with the first kind that explains it."""
    pairs = one_part_apart()
    weight = popularity(FREQUENCY_EXPONENT)[pairs.other]
    if least > 0:  # with `least` = 0, unlikely confusions are kept as well
        weight = weight * _likeness(pairs) * (_stays(pairs) & _common()[pairs.other])
    return likely(pairs.source, pairs.other, weight, pairs.kind, least)


def _likeness(pairs: Links) -> Weights:
    shapes = make_shape_pairs()
    key = shapes.left.astype(np.int64) * len(standard_characters()) + shapes.right
    order = np.argsort(key)
    similarity = looked_up(pairs.key, key[order], shapes.similarity[order])
    usual = spoken().usual
    alike = usual[pairs.source] == usual[pairs.other]
    seen = np.where((similarity == 0) & alike, HEARD, similarity)
    return np.asarray(np.multiply.reduce([seen] * SIMILARITY_POWER))


def _common() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    levels = (int(read_table("characters")[sign][0]) for sign in standard_characters())
    return np.array([level <= COMMON for level in levels])


def _stays(pairs: Links) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether the smaller character is the larger part of the other, not its radical.

    An exchange always qualifies.
    """
    names = standard_characters()
    strokes = np.array([count_strokes(sign) for sign in names])
    # the radical's number for a character that is itself a radical; -1 for the others
    radicals = [read_table("characters")[sign][3] for sign in names]
    number = np.array([int(read_table("characters")[sign][4]) for sign in names])
    own = [radical == sign for radical, sign in zip(radicals, names, strict=True)]
    bare = np.where(own, number, -1)
    one, other = strokes[pairs.source], strokes[pairs.other]
    dropped = other < one
    small = np.where(dropped, pairs.other, pairs.source)
    large = np.where(dropped, pairs.source, pairs.other)
    enough = np.minimum(one, other) >= LEAST_KEPT * np.maximum(one, other)
    exchanged = pairs.kind == RADICAL.kinds.index("exchange")
    return np.asarray(exchanged | (enough & (bare[small] != number[large])))
