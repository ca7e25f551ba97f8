"""Homophone swap: a character for one that sounds the same or nearly so (教 → 胶)."""

from cecdata.operators.base import CharConfusions, Operator, shipped

KINDS = ("same_sound", "tone", "initial", "final", "keyboard", "edit1")

OPERATOR = Operator(
    "homophone", "substitute", 1, KINDS, CharConfusions(KINDS, shipped("homophone"))
)
