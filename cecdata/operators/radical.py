"""Radical deletion, addition and exchange: a component dropped, added or swapped (锦 → 帛)."""

from cecdata.operators.base import CharConfusions, Operator, shipped

KINDS = ("deletion", "addition", "exchange")

OPERATOR = Operator("radical", "substitute", 1, KINDS, CharConfusions(KINDS, shipped("radical")))
