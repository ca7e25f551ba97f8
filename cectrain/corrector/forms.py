"""Forms of characters and words: in simplified text traditional forms and variants are corrected
(他沒來 is read as 他没来), and other accepted spellings of words are not (作出 and 做出).
"""

from __future__ import annotations

import re
from functools import cache

from cecdata.hanzi import characters
from cectrain.corrector.correction import Edit, make_edit
from cectrain.corrector.edit_guard import Plain, Protected

#: Confidence that a form is no quotation, name or word of another language.
CONFIDENCE = 0.9
#: Where more of the Han characters of a text are such forms, it is not simplified text.
MOST = 0.2
#: What is quoted keeps its forms, as a name does.
_QUOTED = re.compile("《[^《》]*》|“[^“”]*”|「[^「」]*」|『[^『』]*』")
#: Words of two spellings that stand in dictionaries as equals, or in the first table of variant
#: word forms (GF 1001-2001, a standard of the language commission) with a form in wide use.
_EQUALS = """
作出 做出、当作 当做、看作 看做、叫作 叫做、称作 称做、作客 做客、成阴 成荫、
其他 其它、唯一 惟一、唯有 惟有、唯独 惟独、唯恐 惟恐、订单 定单、订婚 定婚、
订购 定购、烦琐 繁琐、笔画 笔划、成分 成份、辈分 辈份、分量 份量、漂泊 飘泊、
漂流 飘流、磨难 魔难、沙锅 砂锅、日食 日蚀、月食 月蚀、银元 银圆、
红彤彤 红通通、热乎乎 热呼呼、毕恭毕敬 必恭必敬、浑水摸鱼 混水摸鱼、
披星戴月 披星带月、人才 人材、宏图 鸿图、折中 折衷、关联 关连、给予 给与、
授予 授与、枪支 枪枝、模仿 摹仿、凝练 凝炼、简练 简炼、推诿 推委、什么 甚么、
联系 连系、节点 结点、黏 粘、请稍候 请稍后、您稍候 您稍后
"""


def standardise_forms(plain: Plain, protected: Protected) -> list[Edit]:
    """Return the edits that put the standard character in the place of another form of it."""
    forms = map_forms()
    places = [at for at, character in enumerate(plain.text) if character in forms]
    han_count = sum(characters.is_han(ord(character)) for character in plain.text)
    if len(places) > max(1, MOST * han_count):
        return []
    quoted = {at for match in _QUOTED.finditer(plain.text) for at in range(*match.span())}
    settled = plain.fixed | plain.forms | quoted
    return [
        make_edit(plain.text, at, at + 1, forms[plain.text[at]], CONFIDENCE, "form")
        for at in places
        if not protected.holds(at, at + 1) and at not in settled
    ]


@cache
def map_forms() -> dict[str, str]:
    """Return the standard character of each form that has one alone."""
    standard: dict[str, set[str]] = {}
    for character in characters.standard_characters():
        for form in characters.traditional_forms(character) + characters.variant_forms(character):
            if not characters.is_standard(form):
                standard.setdefault(form, set()).add(character)
    return {form: min(meanings) for form, meanings in standard.items() if len(meanings) == 1}


@cache
def read_lexicon() -> frozenset[str]:
    """Return the words of the lexicon."""
    return frozenset(row[0] for row in characters.read_rows("lexicon"))


def is_equal_spelling(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change only puts the other accepted spelling of a word.

    >>> is_equal_spelling("在作出决定前", 1, 2, "做"), is_equal_spelling("在作天", 1, 2, "昨")
    (True, False)
    """
    if len(target) != end - start:
        return False
    changed = text[:start] + target + text[end:]
    difference = _find_difference(text[start:end], target)
    return any(
        text.startswith(word, first) and changed.startswith(spelling, first)
        for word, spelling in _map_spellings().get(difference, ())
        for first in range(max(0, end - len(word)), start + 1)  # where the word may begin
    )


@cache
def _map_spellings() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the words with their other spelling, both ways, by the characters that differ."""
    spellings: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pair in _EQUALS.replace("\n", "").split("、"):
        word, spelling = pair.split()
        for left, right in ((word, spelling), (spelling, word)):
            spellings.setdefault(_find_difference(left, right), []).append((left, right))
    return spellings


def _find_difference(left: str, right: str) -> tuple[str, str]:
    """Return the characters of two texts of one length that differ."""
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
