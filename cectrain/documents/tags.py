"""HTML and XML: the text between tags, but not that of elements of code."""

from __future__ import annotations

import html
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import accumulate

from cectrain.documents.document import OBJECT, Passage, join_parts

CODE = (
    "code|command|computeroutput|filename|kbd|listing|literal|literallayout|math|option|pre|rp|rt|"
    "programlisting|samp|screen|script|style|svg|synopsis|textarea|userinput|var|varname"
)
#: elements within a sentence; any other one ends a passage
_INLINE = (
    "a|abbr|acronym|b|bdi|bdo|big|br|cite|data|del|dfn|em|emphasis|firstterm|font|i|img|ins|label|"
    "link|mark|phrase|q|quote|rb|ruby|s|small|span|strike|strong|sub|sup|time|tt|u|ulink|wbr|xref"
)
_IS_CODE, _IS_INLINE = set(CODE.split("|")), set(_INLINE.split("|"))


def find_passages(source: str, start: int = 0, end: int | None = None) -> Iterator[Passage]:
    """Yield the prose of a source, or of a part of it."""
    text = source[start:end]
    parser = _Parser(start, text)
    parser.feed(text)
    parser.close()
    parser.end_passage()
    for parts in parser.found:
        yield join_parts(source, parts)


class _Parser(HTMLParser):
    """Collects what is prose; references to characters are read, and stay."""

    def __init__(self, start: int, text: str) -> None:
        super().__init__(convert_charrefs=False)
        ends = accumulate(len(line) + 1 for line in text.split("\n"))
        self._starts = [start, *(start + end for end in ends)]  # of lines
        self._parts: list[tuple[int, int] | str] = []
        self._code, self._depth = "", 0  # the element of code that is open, and others in it
        self.found: list[list[tuple[int, int] | str]] = []

    def end_passage(self) -> None:
        """Begin another passage."""
        if self._parts:
            self.found.append(self._parts)
            self._parts = []

    def _add(self, part: tuple[int, int] | str) -> None:
        if not self._code:
            self._parts.append(part)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._code:
            self._depth += tag == self._code
        elif tag in _IS_CODE or ("translate", "no") in attrs:
            self._add(OBJECT)
            self._code, self._depth = tag, 1
        elif tag in _IS_INLINE:
            self._add({"br": " ", "img": OBJECT}.get(tag, ""))
        else:
            self.end_passage()

    def handle_endtag(self, tag: str) -> None:
        if self._code:
            self._depth -= tag == self._code
            if not self._depth:
                self._code = ""
        elif tag not in _IS_INLINE:
            self.end_passage()

    def handle_data(self, data: str) -> None:
        line, column = self.getpos()
        start = self._starts[line - 1] + column
        self._add((start, start + len(data)))

    def handle_charref(self, name: str) -> None:
        self._add(html.unescape(f"&#{name};"))

    def handle_entityref(self, name: str) -> None:
        self._add(html.unescape(f"&{name};"))
