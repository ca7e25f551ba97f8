"""Radical deletion, addition and exchange: a component dropped, added or swapped (锦 → 帛)."""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import level, standard_characters
from cecdata.hanzi.components import kangxi_radical, radical
from cecdata.hanzi.readings import spoken
from cecdata.hanzi.shapes import shape_pairs, stroke_count
from cecdata.operators.base import (
    ConfusionSet,
    InBulk,
    Operator,
    Weights,
    confusion_set,
    popularity,
)
from cecdata.operators.shared_parts import KINDS, one_part_apart
from cecdata.operators.sound_links import Links, looked_up

FREQUENCY_EXPONENT = 0.5  # a frequent character is written for a rare one more readily
# Similarity to this power; a pair that is not listed as alike counts as HEARD where it sounds the
# same (间 简), for the common part is then what is heard, and else not at all (年 旅).
SIMILARITY_POWER, HEARD = 3, 0.4
# Nobody writes 水 for 没 or 茬 for 在: the greater part stays, which is not the mere radical, and
# what is written is one of the 3,500 characters of level 1 of the standard list. Of 200 errors read
# by eye hardly one of the others was thought likely (docs/reading).
LEAST_KEPT, COMMON = 0.5, 1
LEAST = 0.01  # of a character's weight: what is rarer is never missed


@cache
def _build(least: float) -> ConfusionSet:
    """Return the standard characters one component away, with the first kind that explains it."""
    pairs = one_part_apart()
    weight = popularity(FREQUENCY_EXPONENT)[pairs.other]
    if least > 0:  # where no share is too small, unlikely ones are kept as well
        weight = weight * _likeness(pairs) * (_stays(pairs) & _common()[pairs.other])
    return confusion_set(pairs.source, pairs.other, weight, pairs.kind, least)


def _likeness(pairs: Links) -> Weights:
    shapes = shape_pairs()
    key = shapes.left.astype(np.int64) * len(standard_characters()) + shapes.right
    order = np.argsort(key)
    similarity = looked_up(pairs.key, key[order], shapes.similarity[order])
    usual = spoken().usual
    alike = usual[pairs.source] == usual[pairs.other]
    seen = np.where((similarity == 0) & alike, HEARD, similarity)
    return np.asarray(np.multiply.reduce([seen] * SIMILARITY_POWER))


def _common() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([level(sign) <= COMMON for sign in standard_characters()])


def _stays(pairs: Links) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether the smaller character is the greater part of the larger, not its radical."""
    names = standard_characters()
    strokes = np.array([stroke_count(sign) for sign in names])
    # a character that is a radical itself, by the number of that; -1 for the others
    bare = np.array([kangxi_radical(sign) if radical(sign) == sign else -1 for sign in names])
    number = np.array([kangxi_radical(sign) for sign in names])
    one, other = strokes[pairs.source], strokes[pairs.other]
    dropped = other < one
    small = np.where(dropped, pairs.other, pairs.source)
    large = np.where(dropped, pairs.source, pairs.other)
    enough = np.minimum(one, other) >= LEAST_KEPT * np.maximum(one, other)
    exchanged = pairs.kind == KINDS.index("exchange")
    return np.asarray(exchanged | (enough & (bare[small] != number[large])))


OPERATOR = Operator("radical", "substitute", 1, KINDS, InBulk(KINDS, _build, LEAST))
