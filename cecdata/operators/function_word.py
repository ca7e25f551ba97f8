"""Function words taken for each other (的 地 得, 了 着 过): wrong by grammar, not by sound."""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import code_point_slots, frequency
from cecdata.operators.base import ConfusionSet, InBulk, Operator, confusion_set

KINDS = ("function_word",)
# Closed classes out of school grammars (黄伯荣、廖序东《现代汉语》: 虚词); who writes fast puts one
# member for another.
SETS = (
    "的地得", "了着过", "吗嘛吧呢啊呀",  # particles
    "他她它", "我你您他", "这那哪", "谁啥何",  # pronouns
    "在于", "和与跟同及", "把被让使给", "对向往朝", "从由自", "为因以",  # prepositions
    "是有在", "能会可要", "来去到", "做作",  # verbs
    "不没未无", "就才都也还又", "很太最更", "再在",  # adverbs
)  # fmt: skip
FREQUENCY_EXPONENT = 0.5


@cache
def _build(least: float) -> ConfusionSet:
    slots = code_point_slots()
    found = dict.fromkeys(
        (right, wrong) for members in SETS for right in members for wrong in members
        if right != wrong
    )  # fmt: skip
    places = [[int(slots[ord(sign)]) - 1 for sign in pair] for pair in found]
    source, other = np.array(places, np.int32).T
    weight = np.array([frequency(wrong) ** FREQUENCY_EXPONENT for _, wrong in found])
    return confusion_set(source, other, weight, np.zeros(len(found), np.int8), least)


OPERATOR = Operator("function_word", "substitute", 1, KINDS, InBulk(KINDS, _build, 0.0))
