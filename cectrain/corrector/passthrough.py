"""The rules that keep text unharmed: which edits of a model are let through.

A model sees a stand-in for each character that it cannot read, and its edits are then filtered:
one that touches a character that is not Han, an unreadable one or a protected name is dropped. All
edits of a piece are refused where together they stray too far from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from cecdata.hanzi.characters import is_han
from cectrain.corrector.correction import Edit, Kept

# Among nine stand-ins and cutting the text at the character, these changed the policy's edits in
# the rest of a sentence least (150 sentences: 7 edits lost or added with 某, 31 by cutting).
_FOR_HAN, _FOR_SIGNS = "某", "·"
FAR = 0.3  # most changed characters of an answer, as a share of the source's Han characters
LENGTH = 0.15  # most characters that it may be longer or shorter, as a share of the same
ALWAYS = 2  # changed characters that are allowed even in the shortest source


def stand_in(character: str, readable: Callable[[str], bool]) -> str:
    """Return the one character that a model reads in place of an unreadable one.

    >>> [stand_in(c, str.isascii) for c in "３㻂💪"]
    ['3', '某', '·']
    """
    plain = unicodedata.normalize("NFKC", character)
    if len(plain) == 1 and readable(plain):
        return plain
    return _FOR_HAN if is_han(ord(character)) else _FOR_SIGNS


def strays(edits: Iterable[Edit], length: int) -> bool:
    """Return whether an answer is too far from its source, which has `length` Han characters.

    A change of one sign into another does not count: it is dropped in any case.

    >>> strays([Edit(0, 2, "一二", "三四", 1.0)], 2), strays([Edit(0, 0, "", "三四五", 1.0)], 9)
    (False, True)
    """
    counted = [e for e in edits if any(map(_han, e.source + e.target))]
    changed = sum(max(len(e.source), len(e.target)) for e in counted)
    longer = sum(len(e.target) - len(e.source) for e in counted)
    return changed > max(ALWAYS, FAR * length) or abs(longer) > max(ALWAYS, LENGTH * length)


def filtered(
    text: str,
    start: int,
    end: int,
    edits: Sequence[Edit],
    unread: Sequence[bool],
    names: Sequence[str] = (),
) -> tuple[list[Edit], list[Kept]]:
    """Return the edits of `text[start:end]` that are let through, and what was kept for the others.

    `unread` says of each character of the text whether the model saw a stand-in for it; `names`
    must not be changed. An edit of an unreadable character, or an insertion beside one, is dropped
    without a record, because the character itself has one.
    """
    if strays(edits, sum(map(_han, text[start:end]))):
        return [], [Kept(start, end, text[start:end], "strayed")]
    spans = list(_spans(text, start, end, names)) if edits else []
    through, kept = [], []
    for edit in edits:
        beside = edit.start == edit.end  # whether a character is missing depends on its neighbours
        if any(unread[max(0, edit.start - beside) : edit.end + beside]):
            continue
        if not _of_han(text, edit):
            reason = "not_han"
        elif any(_overlap(edit, *span) for span in spans):
            reason = "protected"
        else:
            through.append(edit)
            continue
        kept.append(Kept(edit.start, edit.end, edit.source, reason))
    return through, kept


def _spans(text: str, start: int, end: int, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where names touch `text[start:end]`."""
    for name in names:
        low = max(0, start - len(name))
        for match in re.finditer(re.escape(name), text[low : end + len(name)]):
            yield low + match.start(), low + match.end()


def _of_han(text: str, edit: Edit) -> bool:
    """Return whether an edit holds only Han characters and inserts none between two other signs.

    The latter keeps 45.6%, R&D, links and the like in one piece.
    """
    if not all(map(_han, edit.source + edit.target)):
        return False
    around = text[max(0, edit.start - 1) : edit.end + 1]
    return any(map(_han, around))


def _overlap(edit: Edit, start: int, end: int) -> bool:
    if edit.start == edit.end:
        return start < edit.start < end
    return edit.start < end and start < edit.end


def _han(character: str) -> bool:
    return is_han(ord(character))
