"""Function words taken for each other (的 地 得, 了 着 过): wrong by grammar, not by sound."""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import code_point_slots, frequency
from cecdata.operators.base import ConfusionSet, InBulk, Operator, confusion_set

KINDS = ("particle", "pronoun", "preposition", "verb", "adverb")
# Closed classes out of school grammars (黄伯荣、廖序东《现代汉语》: 虚词); who writes fast puts one
# member for another. A pair's kind is the first set that holds both.
SETS = (
    ("的地得", "particle"), ("了着过", "particle"), ("吗嘛吧呢啊呀", "particle"),
    ("他她它", "pronoun"), ("我你您他", "pronoun"), ("这那哪", "pronoun"), ("谁啥何", "pronoun"),
    ("在于", "preposition"), ("和与跟同及", "preposition"), ("把被让使给", "preposition"),
    ("对向往朝", "preposition"), ("从由自", "preposition"), ("为因以", "preposition"),
    ("是有在", "verb"), ("能会可要", "verb"), ("来去到", "verb"), ("做作", "verb"),
    ("不没未无", "adverb"), ("就才都也还又", "adverb"), ("很太最更", "adverb"), ("再在", "adverb"),
)  # fmt: skip
FREQUENCY_EXPONENT = 0.5


@cache
def _build(least: float) -> ConfusionSet:
    slots = code_point_slots()
    found: dict[tuple[str, str], str] = {}
    for members, kind in SETS:
        for right in members:
            for wrong in members.replace(right, ""):
                found.setdefault((right, wrong), kind)
    places = [[int(slots[ord(sign)]) - 1 for sign in pair] for pair in found]
    source, other = np.array(places, np.int32).T
    weight = np.array([frequency(wrong) ** FREQUENCY_EXPONENT for _, wrong in found])
    kinds = np.array([KINDS.index(kind) for kind in found.values()], np.int8)
    return confusion_set(source, other, weight, kinds, least)


OPERATOR = Operator("function_word", "substitute", 1, KINDS, InBulk(KINDS, _build, 0.0))
