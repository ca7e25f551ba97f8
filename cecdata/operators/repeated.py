"""A repeated character: typed twice, or a sentence resumed after a pause (很快 → 很很快)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import is_standard
from cecdata.operators.base import Confusion, Operator


def confusions(character: str) -> Iterator[Confusion]:
    """Yield a standard character written twice."""
    if is_standard(character):
        yield Confusion(character, character * 2, 1.0, "repeated")


OPERATOR = Operator("repeated", "substitute", 1, ("repeated",), confusions)
