"""The perturbation operators: parallel modules and the one table that names them.

A new operator needs one new module with `OPERATOR`, and one entry here.
"""

from __future__ import annotations

from cecdata.common.settings import require_known
from cecdata.operators import (
    function_word,
    homophone,
    lexical,
    missing,
    near_glyph,
    noise,
    radical,
    repeated,
    slip,
    split,
    swap,
    width,
    word,
)
from cecdata.operators.base import Action, Confusion, Operator

__all__ = ["OPERATORS", "Action", "Confusion", "Operator", "operator"]

# The order is part of the format: it decides which random draw means which operator.
OPERATORS: dict[str, Operator] = {
    module.OPERATOR.name: module.OPERATOR
    for module in (
        homophone,
        near_glyph,
        radical,
        split,
        noise,
        function_word,
        lexical,
        missing,
        repeated,
        width,
        word,
        swap,
        slip,
    )
}


def operator(name: str) -> Operator:
    """Return the operator of that name; otherwise raise UsageError with the nearest name."""
    require_known("operator", name, OPERATORS)
    return OPERATORS[name]
