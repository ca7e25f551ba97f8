"""Lexical slips: a half of a similar word (设计 → 设置), or the word's next character too soon.

One real error in seven neither sounds nor looks like the right character. In most of these the
writer thought of a word with the same other half, or typed a character of the word too soon or
twice.
"""

from cecdata.operators.base import CharConfusions, Operator, shipped

KINDS = ("word_frame", "word_neighbour")

OPERATOR = Operator("lexical", "substitute", 1, KINDS, CharConfusions(KINDS, shipped("lexical")))
