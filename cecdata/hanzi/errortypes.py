"""Categories of errors, which depend on the characters only.

An error may have several properties: 己 for 已 looks similar and has the same number of strokes; 再
for 在 sounds the same. Its category is the first of its properties in the order of LEAVES.
Syllables that differ by a slip of the keyboard only (ji, yi) are an exception: they come after
look-alikes and components.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cecdata.hanzi import components, readings
from cecdata.hanzi.characters import is_han, is_standard
from cecdata.hanzi.edits import Corruption, align

#: an error's category, in the order of priority
LEAVES = (
    "homophone",
    "near-sound",
    "more-stroke",
    "fewer-stroke",
    "same-stroke",
    "radical",
    "split-merge",
    "symbol",
    "order",
    "other",
)
STROKE = ("more-stroke", "fewer-stroke", "same-stroke")
#: a sentence's category: that of its errors, `stroke` if all are of STROKE, else mixed
SENTENCE = (*LEAVES[:5], "stroke", *LEAVES[5:], "mixed", "clean")
MEANING = {
    "homophone": "one character for another with the same sound and tone",
    "near-sound": "one character for another with a similar sound: tone, zh/z, n/l, an/ang, keys",
    "more-stroke": "a similar-looking character with more strokes than the right one",
    "fewer-stroke": "a similar-looking character with fewer strokes",
    "same-stroke": "a similar-looking character with the same number of strokes",
    "radical": "a component was dropped, added or exchanged",
    "split-merge": "a character written as its parts, or parts as one character",
    "symbol": "a punctuation mark or symbol that is added, missing or wrong",
    "order": "two parts of the text that were swapped",
    "other": "another error: a missing, added or wrong word",
    "stroke": "similar-looking characters with more, fewer or equally many strokes",
    "mixed": "errors of several categories in one sentence",
    "clean": "no error",
}
REACH = 4  # the largest distance, in code points, over which moved text counts as changed order


class Typed(NamedTuple):
    """One error: the edit, whose source is wrong and whose target is right, and its category."""

    edit: Corruption
    category: str


def find_errors(source: str, reference: str) -> tuple[Typed, ...]:
    """Return the errors of a sentence, each with its category.

    >>> [error.category for error in find_errors("言吴会己经#", "误会已经")]
    ['split-merge', 'same-stroke', 'symbol']
    """
    edits = _join_moves(align(source, reference), reference)
    return tuple(Typed(edit, _name_category(edit.source, edit.target)) for edit in edits)


def name_sentence_type(source: str, reference: str) -> str:
    """Return the category of all errors of a sentence, or `clean` where it has none.

    Errors of several categories are `stroke` if all of them are in STROKE, else `mixed`.

    >>> name_sentence_type("我门在一起", "我们在一起"), name_sentence_type("我们", "我们")
    ('near-sound', 'clean')
    """
    categories = {error.category for error in find_errors(source, reference)}
    if not categories:
        return "clean"
    if len(categories) == 1:
        return categories.pop()
    return "stroke" if categories.issubset(STROKE) else "mixed"


def edit_type(source: str, target: str) -> str:
    """Return the category of one edit; `missing`, `surplus` or `word` where no category fits.

    >>> [edit_type(*pair) for pair in (("己", "已"), ("", "的"), ("再", "在"), ("在己", "再已"))]
    ['same-stroke', 'missing', 'homophone', 'word']
    """
    if not source or not target:
        return "surplus" if source else "missing"
    categories = {error.category for error in find_errors(source, target)}
    return categories.pop() if len(categories) == 1 else "word"


def counts_in_row(category: str, row: str) -> bool:
    """Return whether a sentence of `category` counts in a row; the row `stroke` includes STROKE."""
    return category == row or (row == "stroke" and category in STROKE)


@lru_cache(maxsize=65536)
def _name_category(wrong: str, right: str) -> str:
    """Return the category of an edit that wrote `wrong` for `right`."""
    if len(wrong) == len(right) == 1 and is_han(ord(wrong)) and is_han(ord(right)):
        return _name_category_of_characters(wrong, right)
    if _is_split(wrong, right) or _is_split(right, wrong):
        return "split-merge"
    if all(unicodedata.category(character)[0] in "PSZC" for character in wrong + right):
        return "symbol"
    return "order" if sorted(wrong) == sorted(right) else "other"


def _name_category_of_characters(wrong: str, right: str) -> str:
    """Return the category of one Han character written for another."""
    if readings.have_same_sound(wrong, right):
        return "homophone"
    sound = readings.link_sounds(wrong, right)
    mistyped = sound in ("keyboard", "edit1")  # 己 for 已 is rather a look-alike than a slip
    if sound is not None and not mistyped:
        return "near-sound"
    if components.measure_similarity(wrong, right) > 0:
        added = components.count_strokes(wrong) - components.count_strokes(right)
        return "more-stroke" if added > 0 else "fewer-stroke" if added < 0 else "same-stroke"
    exchanged = is_standard(wrong) and right in components.list_exchanges(wrong)
    dropped = right in components.list_deletions(wrong)
    if exchanged or dropped or wrong in components.list_deletions(right):
        return "radical"
    return "near-sound" if mistyped else "other"


def _is_split(parts: str, whole: str) -> bool:
    return len(whole) == 1 and any(split.parts == parts for split in components.list_splits(whole))


def _join_moves(edits: Sequence[Corruption], reference: str) -> list[Corruption]:
    """Return the edits, with two that only move text joined: ba for ab, and bxa for xab."""
    joined: list[Corruption] = []
    for edit in edits:
        last = joined[-1] if joined else None
        if last is not None and _are_swapped(last, edit):
            between = reference[last.end : edit.start]
            joined[-1] = Corruption(
                start=last.start,
                end=edit.end,
                target=reference[last.start : edit.end],
                source=last.source + between + edit.source,
            )
        else:
            joined.append(edit)
    return joined


def _are_swapped(left: Corruption, right: Corruption) -> bool:
    """Return whether two edits exchange their texts, or move a text by at most REACH."""
    crossed = left.target == right.source and left.source == right.target
    moved = not (left.target and left.source)  # deleted at one place and inserted at the other
    gap = right.start - left.end
    return crossed and left.source != left.target and (gap == 0 or (moved and gap <= REACH))
