"""A repeated character: a key pressed twice, or a sentence taken up again (很快 → 很很快)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import is_standard
from cecdata.operators.base import Confusion, Operator


def confusions(character: str) -> Iterator[Confusion]:
    """Yield the character twice."""
    if is_standard(character):
        yield Confusion(character, character * 2, 1.0, "repeated")


OPERATOR = Operator("repeated", "substitute", 1, ("repeated",), confusions)
