"""Two characters read as one, as by a scanner (女子 → 好): the inverse of split."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import frequency, is_standard, standard_characters
from cecdata.hanzi.components import splits
from cecdata.operators.base import Operator
from cecdata.operators.spans import InSpans, SpanSet, span_set

KINDS = ("left_right_merged", "top_bottom_merged")
_KINDS = {"lr": 0, "tb": 1}


@cache
def _build() -> SpanSet:
    return span_set(
        [
            (split.parts, sign, split.weight * frequency(sign), _KINDS[split.kind])
            for sign in standard_characters()
            for split in splits(sign)
            if len(split.parts) == 2 and split.kind in _KINDS and all(map(is_standard, split.parts))
        ]
    )


OPERATOR = Operator("merge", "rewrite", 2, KINDS, InSpans(KINDS, _build))
