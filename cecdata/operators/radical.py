"""Radical deletion, addition and exchange: a component dropped, added or swapped (锦 → 帛)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import frequency
from cecdata.hanzi.components import additions, deletions, exchanges
from cecdata.operators.base import Confusion, Operator, strongest

FREQUENCY_EXPONENT = 0.4
LIMIT = 32


def confusions(character: str) -> Iterator[Confusion]:
    """Every standard character one component away; the first kind that explains it counts."""
    found: dict[str, Confusion] = {}
    for kind, others in (
        ("deletion", deletions(character)),
        ("addition", additions(character)),
        ("exchange", exchanges(character)),
    ):
        for other in others:
            weight = frequency(other) ** FREQUENCY_EXPONENT
            found.setdefault(other, Confusion(character, other, weight, kind))
    yield from strongest(found, LIMIT)


OPERATOR = Operator(
    "radical", "substitute", 1, ("deletion", "addition", "exchange"), confusions
)
