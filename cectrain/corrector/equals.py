"""Words of two accepted spellings, neither of which is an error: 作出 and 做出, 唯一 and 惟一.

They stand in dictionaries as equals, or in the first table of variant word forms (GF 1001-2001, a
standard of the language commission) with a form that is still in wide use.
"""

from __future__ import annotations

from functools import cache

_EQUALS = """
作出 做出、当作 当做、看作 看做、叫作 叫做、称作 称做、作客 做客、成阴 成荫、
其他 其它、唯一 惟一、唯有 惟有、唯独 惟独、唯恐 惟恐、订单 定单、订婚 定婚、
订购 定购、烦琐 繁琐、笔画 笔划、成分 成份、辈分 辈份、分量 份量、漂泊 飘泊、
漂流 飘流、磨难 魔难、沙锅 砂锅、日食 日蚀、月食 月蚀、银元 银圆、
红彤彤 红通通、热乎乎 热呼呼、毕恭毕敬 必恭必敬、浑水摸鱼 混水摸鱼、
披星戴月 披星带月、人才 人材、宏图 鸿图、折中 折衷、关联 关连、给予 给与、
授予 授与、枪支 枪枝、模仿 摹仿、凝练 凝炼、简练 简炼、推诿 推委
"""


def is_equal_spelling(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change only puts the other accepted spelling of a word.

    >>> is_equal_spelling("在作出决定前", 1, 2, "做"), is_equal_spelling("在作天", 1, 2, "昨")
    (True, False)
    """
    if len(target) != end - start:
        return False
    changed = text[:start] + target + text[end:]
    for word, spelling in _other_spellings().get(_difference(text[start:end], target), ()):
        for first in range(max(0, end - len(word)), start + 1):
            if text.startswith(word, first) and changed.startswith(spelling, first):
                return True
    return False


@cache
def _other_spellings() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the words with their other spelling, both ways, by the characters that differ."""
    spellings: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pair in _EQUALS.replace("\n", "").split("、"):
        word, spelling = pair.split()
        for left, right in ((word, spelling), (spelling, word)):
            spellings.setdefault(_difference(left, right), []).append((left, right))
    return spellings


def _difference(left: str, right: str) -> tuple[str, str]:
    """Return the characters of two texts of one length that differ."""
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
