"""Function words written for each other (的 地 得, 他 她 它): errors of grammar."""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import find_frequency, make_slots
from cecdata.operators.base import CharConfusions, ConfusionSet, Operator, make_confusion_set

KINDS = ("function_word",)
# Closed classes of school grammars (黄伯荣、廖序东《现代汉语》: 虚词) whose members are written for
# each other in haste. Prepositions, adverbs and pronouns of different persons are left out: of 200
# errors read by eye, theirs gave correct sentences or were errors that nobody would make
# (experiments/reading).
SETS = (
    *("的地得", "吗嘛", "吧呢", "啊呀"),  # particles
    *("他她它", "那哪"),  # pronouns
    *("在再", "做作", "和合", "已以", "像象"),
)
# These are mostly parts of words (地铁), where nobody takes them for function words.
NEVER_RIGHT = "地合象"
FREQUENCY_EXPONENT = 0.5


@cache
def _build_swaps() -> ConfusionSet:
    """Return the confusions of function words with each other, weighted by frequency."""
    slots = make_slots()
    swaps = dict.fromkeys(
        (right, wrong)
        for members in SETS
        for right in members
        for wrong in members
        if right != wrong and right not in NEVER_RIGHT
    )
    positions = [[int(slots[ord(sign)]) - 1 for sign in pair] for pair in swaps]
    source, other = np.array(positions, np.int32).T
    weight = np.array([find_frequency(wrong) ** FREQUENCY_EXPONENT for _, wrong in swaps])
    return make_confusion_set(source, other, weight, np.zeros(len(swaps), np.int8))


OPERATOR = Operator("function_word", "substitute", 1, KINDS, CharConfusions(KINDS, _build_swaps))
