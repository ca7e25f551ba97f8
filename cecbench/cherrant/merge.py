"""Merging the steps of an alignment into edits: runs merge, and moved text becomes one edit."""

from __future__ import annotations

import string
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from cecbench.cherrant.align import Step

#: The marks of the merging rules, in order: a text counts as marks if it is part of this string.
MARKS = (
    string.punctuation
    + "！？｡＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    + "〔〕〖〗〘〙〚〛〜〝〞〟–—‘'‛“”„‟…‧."
)
MATCH, TRANSPOSE, SUBSTITUTE, INSERT, DELETE = 1, 2, 4, 8, 16


def merge(steps: list[Step], source: str, target: str) -> list[Step]:
    """Return the edits, each as (operation, source start, source end, target start, target end).

    First, neighbouring steps merge. A run of deletions alone, or of insertions alone, becomes one
    edit; deletions mixed with insertions stay separate; any other mixture becomes one substitution.
    A transposition is an edit by itself.

    Then some edits become one transposition: two substitutions around a match that exchange their
    strings, and a deletion and an insertion of the same text, which is not punctuation, around a
    match or a transposition.
    """
    if len(steps) == 1:
        return steps
    runs = _runs(steps)
    if len(runs) == 1:
        return runs
    edits: list[Step] = []
    at = 0
    while at < len(runs):
        moved, taken = _unit(runs, at, source, target)
        edits.append(moved)
        at += taken
    return edits


def _runs(steps: list[Step]) -> list[Step]:
    """Return the steps with neighbouring ones merged."""
    merged: list[Step] = []
    run: list[Step] = []
    for step in steps:
        together = run and run[-1][2] == step[1] and run[-1][4] == step[3]
        if run and (not together or step[0] == TRANSPOSE or run[-1][0] == TRANSPOSE):
            merged.extend(_run(run))
            run = []
        run.append(step)
    merged.extend(_run(run))
    return merged


def _run(run: list[Step]) -> list[Step]:
    if len(run) == 1:
        return run
    operations = {step[0] for step in run}
    if operations == {INSERT, DELETE}:
        return run
    operation = run[0][0] if len(operations) == 1 else SUBSTITUTE
    return [(operation, run[0][1], run[-1][2], run[0][3], run[-1][4])]


def _unit(runs: list[Step], at: int, source: str, target: str) -> tuple[Step, int]:
    """Return the edit that begins at this run, and its number of runs."""
    for count, transposed in ((2, False), (3, True)):
        group = runs[at : at + count]
        if len(group) < count or not _follows(group, transposed=transposed):
            continue
        first, last = group[0], group[-1]
        if _exchanged(first, last, source, target, transposed=transposed):
            return (TRANSPOSE, first[1], last[2], first[3], last[4]), count
    return runs[at], 1


def _follows(group: list[Step], *, transposed: bool) -> bool:
    """Return whether one match, or one transposition, is between the first and the last."""
    touching = [a[2] == b[1] and a[4] == b[3] for a, b in pairwise(group)]
    if transposed:
        return all(touching) and group[1][0] == TRANSPOSE
    return not any(touching)


def _exchanged(first: Step, last: Step, source: str, target: str, *, transposed: bool) -> bool:
    kinds = {first[0], last[0]}
    if kinds == {SUBSTITUTE} and not transposed:
        there = source[first[1] : first[2]], target[last[3] : last[4]]
        back = source[last[1] : last[2]], target[first[3] : first[4]]
        return swapped(there, back)
    if kinds != {INSERT, DELETE}:
        return False
    texts = [
        source[step[1] : step[2]] if step[0] == DELETE else target[step[3] : step[4]]
        for step in (first, last)
    ]
    return moved(texts[0], texts[1])


def swapped(there: tuple[str, str], back: tuple[str, str]) -> bool:
    """Return whether two substitutions exchange their strings.

    If all strings have two or more characters, each may change by one character.

    >>> swapped(("小王", "小王"), ("老李", "李")), swapped(("小王", "小张"), ("老李", "老李"))
    (False, True)
    """
    if min(map(len, (*there, *back))) == 1:
        return there[0] == there[1] and back[0] == back[1]
    return all(Levenshtein.distance(a, b) <= 1 for a, b in (there, back))


def moved(deleted: str, inserted: str) -> bool:
    """Return whether a deletion and an insertion are one text that moved, and not marks.

    Texts of two or more characters may differ by one character, or be rotated.

    >>> moved("去", "去"), moved("，", "，"), moved("公园", "公园里"), moved("去", "来")
    (True, False, True, False)
    >>> moved("小王对", "对小王"), moved("小王对", "王小对"), moved("……", "……")
    (True, False, True)
    """
    if deleted in MARKS or inserted in MARKS:
        return False
    if min(len(deleted), len(inserted)) == 1:
        return deleted == inserted
    rotated = len(deleted) == len(inserted) and inserted in deleted + deleted
    return rotated or Levenshtein.distance(deleted, inserted) <= 1
