"""The operators that are a confusion set or a rule of a few lines.

`tools/operators` makes the sets that ship.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from cecdata.hanzi.characters import is_standard, list_words, traditional_forms, variant_forms
from cecdata.hanzi.components import BESIDE, UNDERLINED, find_two_parts, list_splits, look_like
from cecdata.operators import base, spans
from cecdata.operators.base import CharConfusions, Confusion, Operator
from cecdata.operators.spans import SpanConfusions, SpanSet

SYMBOLS = "#$%&*"  # paper, listing "Perturbation pipeline"
# What the same key gives in Chinese and in English mode.
_KEYS = {"，": ",", "。": ".", "！": "!", "？": "?", "：": ":", "；": ";", "（": "(", "）": ")"}
TO_HALF = {**_KEYS, **{chr(0xFF10 + digit): str(digit) for digit in range(10)}}
TO_FULL = {half: full for full, half in TO_HALF.items()}
_SPLITS = {BESIDE: "left_right", UNDERLINED: "enclosure"}  # layout → kind
_SPELLED = 0.25  # weight of parts that look different in the character, relative to the others
_SWAP_COST = 2  # Levenshtein distance
_LEAST_COUNT = 20  # people swap characters in words that they type often


def _substitute(name: str, *kinds: str) -> Operator:
    """Return an operator with the shipped confusions of characters of this name."""
    return Operator(name, "substitute", 1, kinds, CharConfusions(kinds, base.make_reader(name)))


def _rewrite_spans(name: str, *kinds: str) -> Operator:
    """Return an operator with the shipped confusions of spans of this name."""
    return Operator(name, "rewrite", 1, kinds, SpanConfusions(kinds, spans.make_reader(name)))


#: A character for one that sounds the same or nearly so (教 → 胶).
HOMOPHONE = _substitute("homophone", "same_sound", "tone", "initial", "final", "keyboard", "edit1")

#: A character for one that looks like it (未 → 末). The paper's evaluation tells more-stroke from
#: fewer-stroke errors; `equal_stroke` is the rest.
NEAR_GLYPH = _substitute("near_glyph", "more_stroke", "fewer_stroke", "equal_stroke")

#: A component dropped, added or swapped (锦 → 帛).
RADICAL = _substitute("radical", "deletion", "addition", "exchange")

#: A half of a similar word (设计 → 设置), or the word's next character too soon. One real error in
#: seven neither sounds nor looks like the right character. In most of these the writer thought of
#: a word with the same other half, or typed a character of the word too soon or twice.
LEXICAL = _substitute("lexical", "word_frame", "word_neighbour")

#: What a pinyin input method offers for a whole word (权利 → 权力).
WORD = _rewrite_spans("word", "same_sound_word", "fuzzy_word", "part_of_word")

#: A word's next character too soon (嘴唇 → 唇唇), or a word that comes to mind. `lexical` writes
#: the same characters in any context; here the word itself decides.
SLIP = _rewrite_spans("slip", "word_frame", "word_neighbour")


def _leave_out(character: str) -> Iterator[Confusion]:
    if is_standard(character):
        yield Confusion(character, "", 1.0, "missing")


def _repeat(character: str) -> Iterator[Confusion]:
    if is_standard(character):
        yield Confusion(character, character * 2, 1.0, "repeated")


def _insert_symbol(character: str) -> Iterator[Confusion]:
    for symbol in SYMBOLS:
        yield Confusion(character, symbol, 1.0, "insertion")


def _change_width(character: str) -> Iterator[Confusion]:
    """Yield the character that the same key gives in the other mode."""
    if character in TO_HALF:
        yield Confusion(character, TO_HALF[character], 1.0, "half_width")
    elif character in TO_FULL:
        yield Confusion(character, TO_FULL[character], 1.0, "full_width")


def _change_form(character: str) -> Iterator[Confusion]:
    """Yield the forms of a character that are no standard characters, each equally likely."""
    for kind, forms in (("traditional", traditional_forms), ("variant", variant_forms)):
        for form in dict.fromkeys(forms(character)):
            if not is_standard(form) and form <= "\uffff":  # no keyboard offers the others
                yield Confusion(character, form, 1.0, kind)


#: Typed too fast, or selected and deleted with its neighbours.
MISSING = Operator("missing", "substitute", 1, ("missing",), _leave_out)

#: Typed twice, or a sentence resumed after a pause (很快 → 很很快).
REPEATED = Operator("repeated", "substitute", 1, ("repeated",), _repeat)

#: One of `# $ % & *` inserted (用户 → 用户#).
NOISE = Operator("noise", "insert", 1, ("insertion",), _insert_symbol)

#: Punctuation and digits in the other width: a keyboard left in the wrong mode (， → ,).
WIDTH = Operator(
    "width",
    "substitute",
    1,
    ("half_width", "full_width"),
    _change_width,
    "".join((*TO_HALF, *TO_FULL)),
)

#: A traditional form or another variant of a simplified character (对 → 對, 没 → 沒).
VARIANT = Operator("variant", "substitute", 1, ("traditional", "variant"), _change_form)


@cache
def _swap_words() -> SpanSet:
    """Return frequent words of two characters, each with the characters swapped."""
    listed = list_words(2)
    often = zip(listed.texts, listed.counts, strict=True)
    right = [word for word, count in often if count >= _LEAST_COUNT and word[0] != word[1]]
    wrong = sorted(word[::-1] for word in right)
    number = {word: position for position, word in enumerate(wrong)}
    return SpanSet(
        sources=tuple(right),
        texts=tuple(wrong),
        bounds=np.arange(len(right) + 1),
        replacement=np.array([number[word[::-1]] for word in right], np.int64),
        kind=np.zeros(len(right), np.int64),
        weight=np.ones(len(right)),
        cost=np.full(len(right), _SWAP_COST),
    )


#: Two neighbouring characters of a word that changed places (字典 → 典字).
SWAP = Operator(
    "swap", "rewrite", _SWAP_COST, ("swapped",), SpanConfusions(("swapped",), _swap_words)
)


def _split_character(character: str) -> Iterator[Confusion]:
    """Yield splits into two parts that can be typed; neither is the character itself."""
    layout, drawn_parts = find_two_parts(character)
    weights: dict[str, float] = {}
    for split in list_splits(character) if layout else ():
        if len(split.parts) != 2 or character in split.parts or split.weight == 0:
            continue
        factor = 1.0 if look_like(split.parts, drawn_parts) else _SPELLED
        weights[split.parts] = split.weight * factor
        if all(drawn_parts):  # each has a code point
            weights.setdefault("".join(drawn_parts), split.weight)
    for parts, weight in weights.items():
        if max(parts) <= "\uffff":  # no keyboard and no scanner knows the others
            yield Confusion(character, parts, weight, _SPLITS[layout])


#: A character written as its two components (误 → 言吴, 讠吴). The paper's listing changes nothing;
#: the example of its table is followed (docs/paper.md row 9). Only characters of the layouts ⿰ and
#: ⿺ are split: of 200 splits read by eye, none with one part above or around the other was judged
#: likely (experiments/reading).
SPLIT = Operator("split", "substitute", 2, tuple(_SPLITS.values()), _split_character)
