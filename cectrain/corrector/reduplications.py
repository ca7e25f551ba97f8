"""Reduplications, which no change may shorten: 慢慢, 绿油油, 蓊蓊郁郁."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import rows


def shortens_reduplication(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change leaves out a character of a reduplication.

    >>> shortens_reduplication("蓊蓊郁郁的", 0, 1, ""), shortens_reduplication("我我们", 0, 1, "")
    (True, False)
    """
    source = text[start:end]
    for place, character in enumerate(source):
        if source[:place] + source[place + 1 :] != target:
            continue
        for first in (start + place - 1, start + place):
            if text[max(0, first) : first + 2] == 2 * character:
                pairs = text[max(0, first - 2) : max(0, first)], text[first + 2 : first + 4]
                twice = any(len(pair) == 2 and len(set(pair)) == 1 for pair in pairs)
                words = 2 * character, text[max(0, first - 1) : first + 2]
                return twice or any(word in _known_words() for word in words)
    return False


@cache
def _known_words() -> frozenset[str]:
    return frozenset(word for word, _, _ in rows("lexicon"))
