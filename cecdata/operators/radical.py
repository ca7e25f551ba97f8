"""Radical deletion, addition and exchange: a component dropped, added or swapped (锦 → 帛)."""

from __future__ import annotations

from functools import cache

from cecdata.operators.base import ConfusionSet, InBulk, Operator, confusion_set, popularity
from cecdata.operators.shared_parts import KINDS, one_part_apart

FREQUENCY_EXPONENT = 0.5  # a frequent character is written for a rare one more readily
LEAST = 0.01  # of a character's weight: what is rarer is never missed


@cache
def _build(least: float) -> ConfusionSet:
    """Every standard character one component away; the first kind that explains it counts."""
    pairs = one_part_apart()
    weight = popularity(FREQUENCY_EXPONENT)[pairs.other]
    return confusion_set(pairs.source, pairs.other, weight, pairs.kind, least)


OPERATOR = Operator("radical", "substitute", 1, KINDS, InBulk(KINDS, _build, LEAST))
