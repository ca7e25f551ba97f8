"""Edits of a pair of sentences, with ChERRANT's types M, R, S and W: align, merge, classify."""

from __future__ import annotations

import string
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries, read_attributes, to_code_points
from cecdata.common.errors import InputError

#: The limit for the steps of all cheapest alignments of a pair. It allows thousands of alignments.
#: Pairs of published data have at most four; on a pair beyond the limit the published script would
#: practically never return.
MOST_STEPS = 500_000

#: The limit for the cells of the grid of two texts, which take 11 bytes each.
MOST_CELLS = 1 << 27


class Step(NamedTuple):
    """An operation, one bit, from source[start:end] to target[target_start:target_end]."""

    operation: int
    start: int
    end: int
    target_start: int
    target_end: int

    def is_before(self, other: Step) -> bool:
        """Return whether the other step begins where this one ends, in both texts."""
        return (self.end, self.target_end) == (other.start, other.target_start)

    def cut(self, source: str, target: str) -> tuple[str, str]:
        """Return the parts of the source and of the target."""
        return source[self.start : self.end], target[self.target_start : self.target_end]

    def extend_to(self, last: Step, operation: int) -> Step:
        """Return one step in place of this one, the last one and all between them."""
        return Step(operation, self.start, last.end, self.target_start, last.target_end)


def align(
    source: str, target: str, dictionaries: Dictionaries, *, first_only: bool = False
) -> tuple[list[list[Step]], bool]:
    """Return the cheapest alignments of two strings without whitespace, and whether there are more.

    An alignment has its steps without the matches.

    first_only: return one, as ChERRANT's `--multi_cheapest_strategy first` does. Strings whose
    lengths differ by more than 10 have only one in any case. Raises InputError for strings whose
    grid would exceed the memory.
    """
    from cecbench.cherrant import kernels

    if len(source) * len(target) > MOST_CELLS:
        raise InputError(
            f"ChERRANT cannot align texts of {len(source):,} and {len(target):,} characters "
            f"({source[:20]!r}…): split them into sentences"
        )
    points = to_code_points(source), to_code_points(target)
    operations, widths = kernels.fill_grid(*points, read_attributes(dictionaries))
    steps, lengths, capped = kernels.find_paths(operations, widths, first_only, MOST_STEPS)
    listed = map(Step._make, steps.tolist())  # of all paths, one after the other
    return [list(islice(listed, length)) for length in lengths.tolist()], capped


#: The marks of the merging rules, in order: a text counts as marks if it is part of this string.
MARKS = (
    string.punctuation
    + "！？｡＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    + "〔〕〖〗〘〙〚〛〜〝〞〟–—‘'‛“”„‟…‧."
)
MATCH, TRANSPOSE, SUBSTITUTE, INSERT, DELETE = 1, 2, 4, 8, 16


def merge(steps: list[Step], source: str, target: str) -> list[Step]:
    """Return the edits that the steps are merged to.

    First, neighbouring steps merge. A run of deletions alone, or of insertions alone, becomes one
    edit; deletions mixed with insertions stay separate; any other mixture becomes one substitution.
    A transposition is an edit by itself.

    Then some edits become one transposition: two substitutions around a match that exchange their
    strings, and a deletion and an insertion of the same text, which is not punctuation, around a
    match or a transposition.
    """
    runs = _merge_neighbours(steps)
    edits: list[Step] = []
    at = 0
    while at < len(runs):
        edit, count = _read_edit(runs, at, source, target)
        edits.append(edit)
        at += count
    return edits


def _merge_neighbours(steps: list[Step]) -> list[Step]:
    """Return the steps with each run of those that touch merged, if none is a transposition."""
    runs = [steps[:1]]
    for last, step in pairwise(steps):
        if last.is_before(step) and TRANSPOSE not in (last.operation, step.operation):
            runs[-1].append(step)
        else:
            runs.append([step])
    return [step for run in runs for step in _merge_run(run)]


def _merge_run(run: list[Step]) -> list[Step]:
    """Return the steps of a run as one; as they are, if only insertions and deletions are mixed."""
    operations = {step.operation for step in run}
    if operations == {INSERT, DELETE}:
        return run
    operation = operations.pop() if len(operations) == 1 else SUBSTITUTE
    return [run[0].extend_to(run[-1], operation)]


def _read_edit(runs: list[Step], at: int, source: str, target: str) -> tuple[Step, int]:
    """Return the edit that begins with a run, and how many runs it consists of.

    Two runs around a match, or three of which that between is a transposition, may be one edit.
    """
    for count, transposed in ((2, False), (3, True)):
        group = runs[at : at + count]
        if len(group) < count or not _has_one_between(group, transposed=transposed):
            continue
        first, last = group[0], group[-1]
        if _is_exchange(first, last, source, target, transposed=transposed):
            return first.extend_to(last, TRANSPOSE), count
    return runs[at], 1


def _has_one_between(group: list[Step], *, transposed: bool) -> bool:
    """Return whether one match, or one transposition, is between the first and the last."""
    touching = [step.is_before(after) for step, after in pairwise(group)]
    if transposed:
        return all(touching) and group[1].operation == TRANSPOSE
    return not any(touching)


def _is_exchange(first: Step, last: Step, source: str, target: str, *, transposed: bool) -> bool:
    """Return whether two steps exchange their texts, or move one text."""
    first_text, first_target = first.cut(source, target)
    last_text, last_target = last.cut(source, target)
    operations = first.operation, last.operation
    if operations == (SUBSTITUTE, SUBSTITUTE) and not transposed:
        return is_swap((first_text, last_target), (last_text, first_target))
    if operations == (DELETE, INSERT):
        return is_move(first_text, last_target)
    return operations == (INSERT, DELETE) and is_move(first_target, last_text)


def is_swap(there: tuple[str, str], back: tuple[str, str]) -> bool:
    """Return whether two substitutions exchange their strings.

    there, back: the source of one and the target of the other. If all strings have two or more
    characters, each may change by one character.

    >>> is_swap(("小王", "小王"), ("老李", "李")), is_swap(("小王", "小张"), ("老李", "老李"))
    (False, True)
    """
    if min(map(len, (*there, *back))) == 1:
        return there[0] == there[1] and back[0] == back[1]
    return all(Levenshtein.distance(a, b) <= 1 for a, b in (there, back))


def is_move(deleted: str, inserted: str) -> bool:
    """Return whether a deletion and an insertion are one text that moved, and not marks.

    Texts of two or more characters may differ by one character, or be rotated.

    >>> is_move("去", "去"), is_move("，", "，"), is_move("公园", "公园里"), is_move("去", "来")
    (True, False, True, False)
    >>> is_move("小王对", "对小王"), is_move("小王对", "王小对"), is_move("……", "……")
    (True, False, True)
    """
    if deleted in MARKS or inserted in MARKS:
        return False
    if min(len(deleted), len(inserted)) == 1:
        return deleted == inserted
    rotated = len(deleted) == len(inserted) and inserted in deleted + deleted
    return rotated or Levenshtein.distance(deleted, inserted) <= 1


_KIND = {TRANSPOSE: "W", SUBSTITUTE: "S", INSERT: "M", DELETE: "R"}
NOT_ANNOTATABLE = "无法标注"
#: texts that a target may have instead of a sentence → the type of their only edit
_NO_EDIT = {"没有错误": "noop", NOT_ANNOTATABLE: "NA"}


class SpanEdit(NamedTuple):
    """source[start:end] becomes `text`; start and end are −1 for noop and NA."""

    start: int
    end: int
    kind: str
    text: str


NOOP = SpanEdit(-1, -1, "noop", "")


@dataclass(frozen=True, slots=True)
class Annotation:
    """The edits of a pair of sentences, once for each of its distinct cheapest alignments.

    target: without whitespace. said: the text instead of a sentence, such as 没有错误, or "".
    capped: whether some alignments were left out.
    """

    target: str
    readings: tuple[tuple[SpanEdit, ...], ...]
    said: str = ""
    capped: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the target says that there is no error."""
        return self.said == "没有错误"

    @property
    def edits(self) -> tuple[SpanEdit, ...]:
        """The edits of all readings; one that k readings have is there k times."""
        return tuple(edit for reading in self.readings for edit in reading)


def annotate(
    source: str,
    target: str,
    dictionaries: Dictionaries = NO_DICTIONARIES,
    *,
    first_only: bool = False,
) -> Annotation:
    """Return the edits from source to target, which have no whitespace.

    An empty target has no reading, as in the published files.

    >>> annotate("我门们走吧。", "我们走吧。").edits
    (SpanEdit(start=1, end=2, kind='R', text=''),)
    >>> annotate("做事应当实求事是。", "做事应当实事求是。").edits
    (SpanEdit(start=5, end=7, kind='W', text='事求'),)
    """
    if not target:
        return Annotation("", ())
    if target in (source, "没有错误"):
        return Annotation(source, ((NOOP,),), "没有错误")
    if target in _NO_EDIT:
        return Annotation(target, ((NOOP._replace(kind=_NO_EDIT[target]),),), target)
    paths, capped = align(source, target, dictionaries, first_only=first_only)
    merged = {tuple(merge(path, source, target)): None for path in paths}
    readings = (tuple(_to_span(step, source, target) for step in steps) for steps in merged)
    return Annotation(target, tuple(readings), capped=capped)


def _to_span(step: Step, source: str, target: str) -> SpanEdit:
    """Return a step as an edit, without the characters at its ends that did not change."""
    operation, start, end, t_start, t_end = step
    if operation == SUBSTITUTE:
        # A merged run may begin or end with characters that did not change.
        while start < end and t_start < t_end and source[start] == target[t_start]:
            start, t_start = start + 1, t_start + 1
        while start < end and t_start < t_end and source[end - 1] == target[t_end - 1]:
            end, t_end = end - 1, t_end - 1
    return SpanEdit(start, end, _KIND[operation], target[t_start:t_end])
