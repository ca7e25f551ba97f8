"""The perturbation operators: parallel modules and the one table that names them.

A new operator needs one new module with `OPERATOR`, and one entry here.
"""

from __future__ import annotations

from cecdata.common.settings import require_known
from cecdata.operators import function_word, shipped, split, swap, typing_errors, variant, width
from cecdata.operators.base import Action, Confusion, Operator

__all__ = ["OPERATORS", "Action", "Confusion", "Operator", "operator"]

# The order is part of the format: it decides which random draw means which operator.
OPERATORS: dict[str, Operator] = {
    each.name: each
    for each in (
        shipped.HOMOPHONE,
        shipped.NEAR_GLYPH,
        shipped.RADICAL,
        split.OPERATOR,
        typing_errors.NOISE,
        function_word.OPERATOR,
        shipped.LEXICAL,
        typing_errors.MISSING,
        typing_errors.REPEATED,
        width.OPERATOR,
        shipped.WORD,
        swap.OPERATOR,
        shipped.SLIP,
        variant.OPERATOR,
    )
}


def operator(name: str) -> Operator:
    """Return the operator of that name; otherwise raise UsageError with the nearest name."""
    require_known("operator", name, OPERATORS)
    return OPERATORS[name]
