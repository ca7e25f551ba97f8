"""Counts of a hypothesis' edits against a reference's, for one sentence.

Hits and misses count as often as the reference has the edit, false positives as often as the
hypothesis has it. The level says which edits are equal: cs compares span and text; ds the span; dt
each character of the span (for an insertion, the character to its right); cse span, text and type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from cecbench.cherrant.edits import SpanEdit

#: the tiers: first letters of the edits' types; N is that of 无法标注 (NA)
TYPES = ("M", "N", "R", "S", "W")
Counts = tuple[int, int, int]


#: level → the keys of an edit, by which edits are equal
LEVELS: dict[str, Callable[[SpanEdit], Iterable[Hashable]]] = {
    "cs": lambda edit: [(edit.start, edit.end, edit.text)],
    "ds": lambda edit: [(edit.start, edit.end)],
    # an insertion has one place; that of an annotation without a place is −1
    "dt": lambda edit: range(edit.start, max(edit.end, edit.start + 1)),
    "cse": lambda edit: [edit],
}


def compare(
    hypothesis: tuple[SpanEdit, ...], reference: tuple[SpanEdit, ...], level: str
) -> Counts:
    """Return tp, fp, fn at a level.

    >>> mine, right = SpanEdit(4, 5, "S", "以"), SpanEdit(4, 5, "S", "已")
    >>> compare((mine,), (right,), "cs"), compare((mine,), (right,), "ds")
    ((0, 1, 1), (1, 0, 0))
    """
    keys = LEVELS[level]
    said = Counter(key for edit in hypothesis if edit.kind != "noop" for key in keys(edit))
    meant = Counter(key for edit in reference if edit.kind != "noop" for key in keys(edit))
    tp = sum(times for key, times in meant.items() if key in said)
    fp = sum(times for key, times in said.items() if key not in meant)
    return tp, fp, sum(meant.values()) - tp


def compare_types(
    hypothesis: tuple[SpanEdit, ...], reference: tuple[SpanEdit, ...]
) -> dict[str, Counts]:
    """Return tp, fp, fn of level cs by type; a hit counts under the reference's type."""
    said = {(*edit[:2], edit.text) for edit in hypothesis if edit.kind != "noop"}
    meant = {(*edit[:2], edit.text) for edit in reference if edit.kind != "noop"}
    counts = {name: [0, 0, 0] for name in TYPES}
    for edit in reference:
        tier = edit.kind[0]
        if tier in counts:
            counts[tier][0 if (edit.start, edit.end, edit.text) in said else 2] += 1
    for edit in hypothesis:
        tier = edit.kind[0]
        if tier in counts and (edit.start, edit.end, edit.text) not in meant:
            counts[tier][1] += 1
    return {name: (tp, fp, fn) for name, (tp, fp, fn) in counts.items()}
