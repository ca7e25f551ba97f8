"""Near-glyph replacement: a character for one that looks like it (未 → 末).

The paper's evaluation tells more-stroke from fewer-stroke errors; `equal_stroke` is the rest.
"""

from cecdata.operators.base import CharConfusions, Operator, shipped

KINDS = ("more_stroke", "fewer_stroke", "equal_stroke")

OPERATOR = Operator(
    "near_glyph", "substitute", 1, KINDS, CharConfusions(KINDS, shipped("near_glyph"))
)
