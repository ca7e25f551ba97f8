"""Two characters read as one, as by a scanner (女子 → 好): the inverse of split."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import frequency, is_standard, level, standard_characters
from cecdata.hanzi.components import BESIDE, looks_like, splits_into_two, two_parts
from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, SpanSet, span_set

KINDS = ("left_right_merged",)
# A scanner's list lacks rarer characters. Of 200 merges read by eye (experiments/reading), none
# with one part above the other, or one that looks different in the character, was judged likely.
COMMON = 2  # level in the standard list: 6,500 characters


@cache
def _build() -> SpanSet:
    return span_set(
        [
            (split.parts, sign, frequency(sign), 0)
            for sign in standard_characters()
            for split in splits_into_two(sign)
            if level(sign) <= COMMON and _beside(sign, split.parts)
        ]
    )


def _beside(sign: str, parts: str) -> bool:
    how, written = two_parts(sign)
    return how == BESIDE and looks_like(parts, written) and all(map(is_standard, parts))


OPERATOR = Operator("merge", "rewrite", 2, KINDS, SpanConfusions(KINDS, _build))
