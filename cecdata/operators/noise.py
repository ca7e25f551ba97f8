"""Symbol noise: one of `# $ % & *` inserted (用户 → 用户#)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.operators.base import Confusion, Operator

SYMBOLS = "#$%&*"  # paper, listing "Perturbation pipeline"


def confusions(character: str) -> Iterator[Confusion]:
    """Yield five symbols, equally likely at every position."""
    for symbol in SYMBOLS:
        yield Confusion(character, symbol, 1.0, "insertion")


OPERATOR = Operator("noise", "insert", 1, ("insertion",), confusions)
