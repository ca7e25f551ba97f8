"""Word-level homophones: what a pinyin input method offers for a whole word (权利 → 权力).

The set ships; `tools/operators/spans.py` makes it of the lexicon.
"""

from cecdata.operators.base import Operator
from cecdata.operators.spans import SpanConfusions, shipped

KINDS = ("same_sound_word", "fuzzy_word", "part_of_word")

OPERATOR = Operator("word", "rewrite", 1, KINDS, SpanConfusions(KINDS, shipped("word")))
