"""Slips within a word: its next character too soon (嘴唇 → 唇唇), or a word that comes to mind.

`lexical` writes the same characters in any context; here the word itself decides. The set ships;
`tools/operators/spans.py` makes it of the lexicon.
"""

from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, shipped

KINDS = ("word_frame", "word_neighbour")

OPERATOR = Operator("slip", "rewrite", 1, KINDS, SpanConfusions(KINDS, shipped("slip")))
