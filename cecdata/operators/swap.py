"""Two neighbouring characters of a word that changed places (字典 → 典字)."""

from __future__ import annotations

from functools import cache

import numpy as np

from cecdata.hanzi.characters import words
from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, SpanSet

KINDS = ("swapped",)
COST = 2  # Levenshtein distance of a swap
LEAST_COUNT = 20  # people swap characters in words that they type often


@cache
def _build() -> SpanSet:
    listed = words(2)
    often = zip(listed.texts, listed.counts, strict=True)
    right = [word for word, count in often if count >= LEAST_COUNT and word[0] != word[1]]
    wrong = sorted(word[::-1] for word in right)
    number = {word: position for position, word in enumerate(wrong)}
    count = len(right)
    return SpanSet(
        sources=tuple(right),
        texts=tuple(wrong),
        bounds=np.arange(count + 1),
        replacement=np.array([number[word[::-1]] for word in right], np.int64),
        kind=np.zeros(count, np.int64),
        weight=np.ones(count),
        cost=np.full(count, COST),
    )


OPERATOR = Operator("swap", "rewrite", COST, KINDS, SpanConfusions(KINDS, _build))
