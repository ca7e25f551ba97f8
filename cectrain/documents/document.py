"""What a document is: texts with their places, and the bytes that edits at places lead to.

A format reads a file into a `Document`. Its passages are prose that is read as one text, whatever
markup and line breaks the file has in between. Edits of passages become edits of the document's
source, and the document writes itself with them: what was not edited stays the same byte for byte.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from cecdata.common.errors import InputError
from cecdata.hanzi.characters import is_han
from cecdata.hanzi.edits import splice
from cectrain.corrector.correction import Correction, Edit, apply_edits
from cectrain.corrector.whole_text import Memory

Span = tuple[int, int] | tuple[int, int, str]
Parts = list[Span | str]
OBJECT = "\ufffc"  # stands in a passage for code, a formula or an image: nothing changes it
_BREAK = re.compile(r"[^\S\n]*\n\s*")  # one space, which parts no words between Han characters
_IGNORE = re.compile(
    r"(?:<!--|%|#|//)[ \t]*cec-ignore(?P<start>-start)?\b(?!-)"
    r"(?(start)(?s:.*?)(?:cec-ignore-end|\Z)|[^\n]*(?:\n[^\n]*)?)"
)


class Part(NamedTuple):
    """A stretch of a passage: where it begins there and in the source, and its characters.

    width: of each character in the source; more than 1 where it is written by its number, as JSON
    writes U+5DF1 as `\\u5df1`, and XML as `&#x5df1;`.
    """

    at: int
    start: int
    size: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is read as one; what belongs to no part of it has no place in the source."""

    text: str
    parts: tuple[Part, ...]

    def place(self, edit: Edit) -> Iterator[Edit]:
        """Yield an edit of the text as edits of the source: one for each part that it changes.

        >>> passage = join_parts("他**己**经", [(0, 1), (3, 4), (6, 7)])
        >>> edit = Edit(start=0, end=2, source="他己", target="她已", confidence=1.0)
        >>> [(one.start, one.end, one.target) for one in passage.place(edit)]
        [(0, 1, '她'), (3, 4, '已')]
        """
        first = bisect_right(self.parts, edit.start, key=lambda part: part.at) - 1
        if edit.start == edit.end:
            # What is inserted belongs to the character before it, so to the first part that fits.
            for at, start, size, width in self.parts[max(first - 1, 0) : first + 1]:
                if at <= edit.start <= at + size:
                    place = start + (edit.start - at) * width
                    yield replace(edit, start=place, end=place)
                    return
            return
        is_by_character = len(edit.source) == len(edit.target)
        rest = edit.target  # of another length, all of which the first part gets
        for at, start, size, width in self.parts[max(first, 0) :]:
            if at >= edit.end:
                break
            low, high = max(at, edit.start), min(at + size, edit.end)  # of the edit, in this part
            if low >= high:
                continue
            inside = slice(low - edit.start, high - edit.start)
            source, target = self.text[low:high], edit.target[inside] if is_by_character else rest
            rest = ""
            if source != target:
                begin, end = start + (low - at) * width, start + (high - at) * width
                yield replace(edit, start=begin, end=end, source=source, target=target)


def spell_target(source: str, edit: Edit) -> str:
    """Return the target of an edit by numbers where the source has numbers for what it replaces.

    >>> edit = Edit(start=1, end=9, source="己", target="已", confidence=1.0)
    >>> spell_target("他&#x5DF1;经", edit), spell_target("他&#24049;经", edit)
    ('&#x5DF2;', '&#24050;')
    """
    written = source[edit.start : edit.end]
    if written == edit.source or written[:2] not in {"&#", "\\u"}:
        return edit.target
    if written[0] == "\\":
        return json.dumps(edit.target)[1:-1]
    form = "&#x%X;" if written[2] in "xX" else "&#%d;"
    return "".join(form % ord(character) for character in edit.target)


def apply_to_source(source: str, edits: Iterable[Edit]) -> str:
    """Return the source of a document with edits at their places."""
    return splice(source, ((e.start, e.end, spell_target(source, e)) for e in edits))


def join_parts(source: str, parts: Iterable[Span | str]) -> Passage:
    """Return the passage of spans of a source and of signs that stand for something, in order.

    A span may have the text that it stands for: a Han character by its number can be corrected.
    """
    texts: list[str] = []
    places: list[Part] = []
    length = 0

    def add(text: str, start: int | None, width: int = 1) -> None:
        """Append a text; `start` is its place in the source, None where it has none."""
        nonlocal length
        if text and start is not None:
            places.append(Part(length, start, len(text), width))
        texts.append(text)
        length += len(text)

    for part in parts:
        if isinstance(part, str):
            add(part, None)
            continue
        start, end, *meant = part
        if meant:
            is_character = len(meant[0]) == 1 and is_han(ord(meant[0]))
            add(meant[0], start if is_character else None, end - start)
            continue
        for line_break in _BREAK.finditer(source, start, end):
            add(source[start : line_break.start()], start)
            add(" ", None)
            start = line_break.end()
        add(source[start:end], start)
    return Passage("".join(texts), tuple(places))


def find_line_starts(source: str) -> list[int]:
    """Return where the lines of a source begin; `bisect_right` gives the number of one."""
    return [0, *(match.end() for match in re.finditer(r"\r\n?|\n", source))]


def find_lines(source: str) -> Iterator[Passage]:
    """Yield each line as a passage: the format of text without markup."""
    for line in re.finditer(r"[^\n]+", source):
        yield join_parts(source, [line.span()])


class Document(Protocol):
    """A file that was read."""

    @property
    def source(self) -> str:
        """The text in which edits have their places."""

    def passages(self) -> Iterable[Passage]:
        """Return the prose, in order."""

    def write(self, edits: Sequence[Edit]) -> bytes:
        """Return the file with edits of the source, which are sorted and do not overlap."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A file of text. mark: its byte order mark. find: the passages of its text."""

    source: str
    encoding: str
    mark: bytes
    find: Callable[[str], Iterable[Passage]]

    def passages(self) -> Iterable[Passage]:
        # Text of the same length, in which lines end as formats expect it.
        return self.find(self.source.replace("\r\n", " \n").replace("\r", "\n"))

    def write(self, edits: Sequence[Edit]) -> bytes:
        """Return the file with edits; raise InputError where its encoding lacks a character."""
        try:
            return self.mark + apply_to_source(self.source, edits).encode(self.encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise InputError(
                f"cannot hold {sign}, which a correction needs, in {self.encoding}: convert it to "
                "UTF-8"
            ) from error


class Reader(Protocol):
    """A corrector, or what stands before one."""

    @property
    def least(self) -> float:
        """The least confidence of an edit that is made."""

    def stream(self, texts: Iterable[str]) -> Iterable[Correction]:
        """Yield one correction a text."""


class Corrected(NamedTuple):
    """The correction of a passage, where that begins in the source, and the edits there."""

    start: int
    correction: Correction
    edits: list[Edit]


def correct_document(corrector: Reader, document: Document) -> Iterator[Corrected]:
    """Yield the correction of each passage.

    Between `cec-ignore-start` and `cec-ignore-end` in comments, in a line with `cec-ignore`, and in
    the line after it, everything stays.
    """
    source = document.source
    ignored = [
        (source.rfind("\n", 0, match.start()) + 1, match.end())
        for match in _IGNORE.finditer(source)
    ]
    passages = [passage for passage in document.passages() if passage.text.strip()]
    memory = Memory(passage.text for passage in passages)
    corrections = corrector.stream(passage.text for passage in passages)
    for passage, correction in zip(passages, corrections, strict=True):
        reviewed = memory.review(correction, corrector.least)
        placed = {
            edit: [place for place in passage.place(edit) if not _is_inside(place, ignored)]
            for edit in reviewed.edits
        }
        edits = tuple(edit for edit, places in placed.items() if places)
        target = apply_edits(passage.text, edits)
        in_source = [place for places in placed.values() for place in places]
        start = passage.parts[0].start if passage.parts else 0
        yield Corrected(start, replace(reviewed, target=target, edits=edits), in_source)


def _is_inside(edit: Edit, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether an edit begins in one of the spans, which are sorted."""
    before = bisect_right(spans, edit.start, key=lambda span: span[0]) - 1
    return before >= 0 and edit.start < spans[before][1]


def list_edits(passages: Iterable[Corrected]) -> list[Edit]:
    """Return the edits of a document, sorted; a footnote may stand within another passage."""
    edits = (edit for passage in passages for edit in passage.edits)
    return sorted(edits, key=lambda edit: (edit.start, edit.end))
