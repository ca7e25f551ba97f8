"""The operators whose confusion sets ship; `tools/operators` makes the sets."""

from __future__ import annotations

from cecdata.operators import base, spans
from cecdata.operators.base import CharConfusions, Operator
from cecdata.operators.spans import SpanConfusions


def _characters(name: str, *kinds: str) -> Operator:
    return Operator(name, "substitute", 1, kinds, CharConfusions(kinds, base.shipped(name)))


def _spans(name: str, *kinds: str) -> Operator:
    return Operator(name, "rewrite", 1, kinds, SpanConfusions(kinds, spans.shipped(name)))


#: A character for one that sounds the same or nearly so (教 → 胶).
HOMOPHONE = _characters("homophone", "same_sound", "tone", "initial", "final", "keyboard", "edit1")

#: A character for one that looks like it (未 → 末). The paper's evaluation tells more-stroke from
#: fewer-stroke errors; `equal_stroke` is the rest.
NEAR_GLYPH = _characters("near_glyph", "more_stroke", "fewer_stroke", "equal_stroke")

#: A component dropped, added or swapped (锦 → 帛).
RADICAL = _characters("radical", "deletion", "addition", "exchange")

#: A half of a similar word (设计 → 设置), or the word's next character too soon. One real error in
#: seven neither sounds nor looks like the right character. In most of these the writer thought of
#: a word with the same other half, or typed a character of the word too soon or twice.
LEXICAL = _characters("lexical", "word_frame", "word_neighbour")

#: What a pinyin input method offers for a whole word (权利 → 权力).
WORD = _spans("word", "same_sound_word", "fuzzy_word", "part_of_word")

#: A word's next character too soon (嘴唇 → 唇唇), or a word that comes to mind. `lexical` writes
#: the same characters in any context; here the word itself decides.
SLIP = _spans("slip", "word_frame", "word_neighbour")
