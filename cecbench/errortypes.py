"""What kind of error a sentence holds, told from the characters alone.

Each error may have several properties: 己 for 已 looks alike and has as many strokes, 再 for 在
sounds the same. The first that holds, in the order of LEAVES, is its category; the cross table
counts all of them, so that one can see what the order decided. One refinement: syllables that
are only a slip of the keyboard apart (ji, yi) come after the look-alikes and components.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cecdata.hanzi import components, readings, shapes
from cecdata.hanzi.characters import frequency, is_han, is_standard
from cecdata.hanzi.edits import Edit, align

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
#: a sentence's category: that of its errors, `stroke` where they differ in strokes only, else mixed
SENTENCE = (*LEAVES[:5], "stroke", *LEAVES[5:], "mixed", "clean")
MEANING = {
    "homophone": "one character for another of the same reading, tone included",
    "near-sound": "one for another that sounds alike: tone, zh/z, n/l, an/ang, a key beside",
    "more-stroke": "a look-alike with more strokes than the right character",
    "fewer-stroke": "a look-alike with fewer strokes",
    "same-stroke": "a look-alike with as many strokes",
    "radical": "a component was dropped, added or exchanged",
    "split-merge": "a character written as its parts, or parts as one character",
    "symbol": "punctuation or a symbol too much, missing, or another one",
    "order": "two stretches of text changed places",
    "other": "none of these: a word left out, added or mistaken",
    "stroke": "several look-alikes that differ in more or fewer strokes",
    "mixed": "errors of several categories in one sentence",
    "clean": "no error",
}
#: bands of the rarest right character among a sentence's errors, occurrences per million
FREQUENCY_BANDS = ((1000.0, "≥ 1000"), (100.0, "100–1000"), (10.0, "10–100"), (0.0, "< 10"))
REACH = 4  # code points over which a moved stretch still counts as changed order


@dataclass(frozen=True, slots=True)
class Typed:
    """One error: the edit (target = right, source = wrong), its category, all that holds of it."""

    edit: Edit
    category: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentenceType:
    """A sentence's category, its errors, and the frequency band of the rarest right character."""

    category: str
    errors: tuple[Typed, ...]
    band: str


def errors_of(source: str, reference: str) -> tuple[Typed, ...]:
    """Every error of a sentence with its category.

    >>> [error.category for error in errors_of("言吴会己经#", "误会已经")]
    ['split-merge', 'same-stroke', 'symbol']
    """
    return tuple(_typed(edit) for edit in _joined(align(source, reference), reference))


def sentence_type(source: str, reference: str) -> SentenceType:
    """The category that a sentence is counted under.

    >>> sentence_type("我门在一起", "我们在一起").category
    'near-sound'
    >>> sentence_type("我们在一起", "我们在一起").category
    'clean'
    """
    errors = errors_of(source, reference)
    kinds = {error.category for error in errors}
    if not kinds:
        return SentenceType("clean", (), "")
    if len(kinds) == 1:
        category = next(iter(kinds))
    else:
        category = "stroke" if kinds <= set(STROKE) else "mixed"
    return SentenceType(category, errors, _band(errors))


def in_row(category: str, row: str) -> bool:
    """Whether a sentence of `category` counts in a row of the table; stroke takes its three in.

    >>> in_row("more-stroke", "stroke"), in_row("stroke", "more-stroke")
    (True, False)
    """
    return category == row or (row == "stroke" and category in STROKE)


def fixed(
    source: str, prediction: str, errors: Sequence[Typed], reference: str
) -> tuple[bool, ...]:
    """For each error of `errors_of(source, reference)`: is it undone, just so, in the prediction?

    >>> errors = errors_of("己经在见", "已经再见")
    >>> fixed("己经在见", "已经在见", errors, "已经再见")
    (True, False)
    """
    if prediction == reference:
        return (True,) * len(errors)
    # Both sets of edits in code points of the source, so that they can be compared.
    made = {_in_source(edit) for edit in _with_shift(align(source, prediction))}
    wanted = _with_shift(tuple(error.edit for error in errors))
    return tuple(_in_source(edit) in made for edit in wanted)


def _typed(edit: Edit) -> Typed:
    properties = _properties(edit.source, edit.target)
    return Typed(edit, properties[0], properties)


@lru_cache(maxsize=65536)
def _properties(wrong: str, right: str) -> tuple[str, ...]:
    held = set()
    if len(wrong) == len(right) == 1 and is_han(ord(wrong)) and is_han(ord(right)):
        held = _of_characters(wrong, right)
    elif _is_split(wrong, right) or _is_split(right, wrong):
        held.add("split-merge")
    elif all(_is_symbol(character) for character in wrong + right):
        held.add("symbol")
    elif sorted(wrong) == sorted(right):
        held.add("order")
    ordered = sorted(held, key=LEAVES.index)
    if ordered[:1] == ["near-sound"] and _only_mistyped(wrong, right):
        ordered = [*ordered[1:], "near-sound"]
    return tuple(ordered) or ("other",)


def _only_mistyped(wrong: str, right: str) -> bool:
    """Whether the link is a slip of the keyboard; then a look-alike explains 己 for 已 better."""
    return readings.near_sound(wrong, right) in ("keyboard", "edit1")


def _of_characters(wrong: str, right: str) -> set[str]:
    held = set()
    if readings.same_sound(wrong, right):
        held.add("homophone")
    elif readings.near_sound(wrong, right) is not None:
        held.add("near-sound")
    if shapes.similarity(wrong, right) > 0:
        more = shapes.stroke_count(wrong) - shapes.stroke_count(right)
        held.add("more-stroke" if more > 0 else "fewer-stroke" if more < 0 else "same-stroke")
    if not (is_standard(wrong) and is_standard(right)):
        return held
    changed = (components.deletions, components.additions, components.exchanges)
    if any(right in change(wrong) for change in changed):
        held.add("radical")
    return held


def _is_split(parts: str, whole: str) -> bool:
    return len(whole) == 1 and any(split.parts == parts for split in components.splits(whole))


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZC"


def _joined(edits: Sequence[Edit], reference: str) -> list[Edit]:
    """The edits, with two that only move text made one: ba for ab, and bxa for xab."""
    joined: list[Edit] = []
    for edit in edits:
        last = joined[-1] if joined else None
        if last is not None and _swapped(last, edit):
            between = reference[last.end : edit.start]
            joined[-1] = Edit(
                last.start,
                edit.end,
                reference[last.start : edit.end],
                last.source + between + edit.source,
            )
        else:
            joined.append(edit)
    return joined


def _swapped(left: Edit, right: Edit) -> bool:
    crossed = left.target == right.source and left.source == right.target
    moved = not (left.target and left.source)  # text left one place and came in at the other
    gap = right.start - left.end
    return crossed and left.source != left.target and (gap == 0 or (moved and gap <= REACH))


def _with_shift(edits: Sequence[Edit]) -> list[tuple[Edit, int]]:
    shifted = []
    shift = 0
    for edit in edits:
        shifted.append((edit, shift))
        shift += len(edit.source) - len(edit.target)
    return shifted


def _in_source(placed: tuple[Edit, int]) -> tuple[int, str, str]:
    edit, shift = placed
    return edit.start + shift, edit.source, edit.target


def _band(errors: Sequence[Typed]) -> str:
    rates = [
        frequency(character)
        for error in errors
        for character in error.edit.target
        if is_han(ord(character))
    ]
    if not rates:
        return "no character"
    return next(name for least, name in FREQUENCY_BANDS if min(rates) >= least)
