"""Two characters read as one, as by a scanner (女子 → 好): the inverse of split."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import frequency, is_standard, level, standard_characters
from cecdata.operators.base import Operator
from cecdata.operators.side_by_side import BESIDE, layout, looks_like, pairs
from cecdata.operators.spans import InSpans, SpanSet, span_set

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
            for split in pairs(sign)
            if level(sign) <= COMMON and _beside(sign, split.parts)
        ]
    )


def _beside(sign: str, parts: str) -> bool:
    how, written = layout(sign)
    return how == BESIDE and looks_like(parts, written) and all(map(is_standard, parts))


OPERATOR = Operator("merge", "rewrite", 2, KINDS, InSpans(KINDS, _build))
