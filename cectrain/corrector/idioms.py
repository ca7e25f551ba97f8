"""What the lexicon says of a change: idioms with one wrong character, and reduplications.

The n-gram model knows few idioms, and the policy has seen few. The idioms are the entries of four
characters of `cecdata/hanzi/tables/lexicon.tsv` that occur `LEAST` times in its texts. The lexicon
also has misspellings of idioms, which occur far less often than these.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import cache
from typing import NamedTuple

from cecdata.hanzi import components, readings
from cecdata.hanzi.characters import rows
from cectrain.corrector.correction import Change

#: What a change to an idiom counts as, where the channel gives it less: a posterior.
EVIDENCE = 0.9
LEAST = 10  # occurrences of an idiom
RARER = 5  # times that a misspelling in the lexicon is rarer than the idiom
_NUMERALS = set("〇一二三四五六七八九十百千万亿两第")


class _Idioms(NamedTuple):
    """How often words of two to four characters occur, and the idioms by their other characters.

    `by_others[n]` leads from the characters besides the n-th to the idiom, or to '' where several
    have them.
    """

    counts: dict[str, int]
    by_others: tuple[dict[str, str], ...]


def find_idioms(text: str) -> Iterator[Change]:
    """Yield the changes of one character that turn four characters of a text into an idiom.

    The wrong character sounds or looks like the right one, and makes no word with its neighbours.

    >>> list(find_idioms("消息不径而走。"))
    [(3, 4, '胫')]
    """
    counts, by_others = _load()
    for start in range(len(text) - 3):
        part = text[start : start + 4]
        for place, idioms in enumerate(by_others):
            idiom = idioms.get(part[:place] + part[place + 1 :])
            if not idiom or RARER * counts.get(part, 0) > counts[idiom]:
                continue
            others = idiom[1:] if place == 0 else idiom[:3]
            if place in {0, 3} and others in counts:
                continue  # 委员会副: a word, and what follows it
            if _is_slip(text, start + place, idiom[place], counts):
                yield start + place, start + place + 1, idiom[place]


def shortens_reduplication(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change leaves out a character of a reduplication: 慢慢, 绿油油, 蓊蓊郁郁.

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
                return twice or any(word in _load().counts for word in words)
    return False


def _is_slip(text: str, at: int, right: str, words: Container[str]) -> bool:
    wrong = text[at]
    if text[max(0, at - 1) : at + 1] in words or text[at : at + 2] in words:
        return False
    if wrong in _NUMERALS or right in _NUMERALS:
        return False
    sound = readings.near_sound(wrong, right)
    near = sound is not None and sound not in {"keyboard", "edit1"}
    return near or readings.same_sound(wrong, right) or components.similarity(wrong, right) > 0


@cache
def _load() -> _Idioms:
    counts = {word: int(count) for word, count, _ in rows("lexicon")}
    by_others: tuple[dict[str, str], ...] = ({}, {}, {}, {})
    for idiom in (word for word, count in counts.items() if len(word) == 4 and count >= LEAST):
        for place, idioms in enumerate(by_others):
            others = idiom[:place] + idiom[place + 1 :]
            idioms[others] = "" if others in idioms else idiom
    return _Idioms(counts, by_others)
