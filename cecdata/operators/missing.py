"""A missing character: typed too fast, or selected and deleted with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import is_standard
from cecdata.operators.base import Confusion, Operator


def confusions(character: str) -> Iterator[Confusion]:
    """Yield the empty string for a standard character."""
    if is_standard(character):
        yield Confusion(character, "", 1.0, "missing")


OPERATOR = Operator("missing", "substitute", 1, ("missing",), confusions)
