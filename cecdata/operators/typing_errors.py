"""Characters left out, typed twice, or with a symbol before them."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import is_standard
from cecdata.operators.base import Confusion, Operator

SYMBOLS = "#$%&*"  # paper, listing "Perturbation pipeline"


def _missing(character: str) -> Iterator[Confusion]:
    """Yield the empty string for a standard character."""
    if is_standard(character):
        yield Confusion(character, "", 1.0, "missing")


def _repeated(character: str) -> Iterator[Confusion]:
    """Yield a standard character written twice."""
    if is_standard(character):
        yield Confusion(character, character * 2, 1.0, "repeated")


def _noise(character: str) -> Iterator[Confusion]:
    """Yield five symbols, equally likely at every position."""
    for symbol in SYMBOLS:
        yield Confusion(character, symbol, 1.0, "insertion")


#: Typed too fast, or selected and deleted with its neighbours.
MISSING = Operator("missing", "substitute", 1, ("missing",), _missing)
#: Typed twice, or a sentence resumed after a pause (很快 → 很很快).
REPEATED = Operator("repeated", "substitute", 1, ("repeated",), _repeated)
#: One of `# $ % & *` inserted (用户 → 用户#).
NOISE = Operator("noise", "insert", 1, ("insertion",), _noise)
