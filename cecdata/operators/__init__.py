"""The perturbation operators: parallel modules and the one table that names them.

A new operator needs one new module with `OPERATOR`, and one entry here.
"""

from __future__ import annotations

from cecdata.operators import function_word, simple
from cecdata.operators.base import Action, Confusion, Operator

__all__ = ["OPERATORS", "Action", "Confusion", "Operator"]

# The order is part of the format: it decides which random draw means which operator.
OPERATORS: dict[str, Operator] = {
    entry.name: entry
    for entry in (
        simple.HOMOPHONE,
        simple.NEAR_GLYPH,
        simple.RADICAL,
        simple.SPLIT,
        simple.NOISE,
        function_word.OPERATOR,
        simple.LEXICAL,
        simple.MISSING,
        simple.REPEATED,
        simple.WIDTH,
        simple.WORD,
        simple.SWAP,
        simple.SLIP,
        simple.VARIANT,
    )
}
