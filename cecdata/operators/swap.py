"""Two neighbouring characters of a word that changed places (字典 → 典字)."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import words
from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, SpanSet, span_set

KINDS = ("swapped",)
LEAST_COUNT = 20  # people swap characters in words that they type often


@cache
def _build() -> SpanSet:
    listed = words(2)
    return span_set(
        [
            (word, word[::-1], 1.0, 0)
            for word, count in zip(listed.texts, listed.counts, strict=True)
            if count >= LEAST_COUNT
        ]
    )


OPERATOR = Operator("swap", "rewrite", 2, KINDS, SpanConfusions(KINDS, _build))
