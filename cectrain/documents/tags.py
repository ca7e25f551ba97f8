"""HTML and XML: the text between tags, but not that of elements of code."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from cectrain.documents.document import OBJECT, Passage, Span, join_parts

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
_STAND_INS = {"br": " ", "img": OBJECT}
# What does not end goes to the end of the source, so that the time is linear.
_TOKEN = re.compile(
    r"""
    (?P<remark> <!--(?s:.*?)(?:-->|\Z) | <!\[CDATA\[(?s:.*?)(?:\]\]>|\Z) | <[?!][^>]*(?:>|\Z))
    | (?P<tag> <(?P<slash>/?)(?P<name>[A-Za-z][^\s/<>]*)
          (?P<attributes>(?:[^<>"']|"[^"]*"|'[^']*')*)>)
    | (?P<sign> &(?:\#\w+|\w+);)
    """,
    re.VERBOSE,
)
_UNTRANSLATED = re.compile(r"""(?i)\stranslate\s*=\s*["']?no\b""")
_UNREAD = {name: re.compile(rf"(?i)(?=</{name}\b)|\Z") for name in ("script", "style")}


def find_passages(source: str, start: int = 0, end: int | None = None) -> Iterator[Passage]:
    """Yield the prose of a source, or of a part of it."""
    parts: list[Span | str] = []
    code, depth = "", 0  # the element of code that is open, and how often
    end = len(source) if end is None else end
    while match := _TOKEN.search(source, start, end):
        name, is_end = (match["name"] or "").lower(), match["slash"] == "/"
        is_empty = (match["attributes"] or "").endswith("/")
        before = (start, match.start())
        start = match.end()
        if code:
            if name == code and not is_empty:
                depth += -1 if is_end else 1
            code = code if depth else ""
            continue
        parts.append(before)
        if match["sign"]:
            parts.append((*match.span(), html.unescape(match[0])))
        elif not name:
            continue  # a remark
        elif name in _IS_CODE or _UNTRANSLATED.search(match["attributes"]):
            parts.append(OBJECT)
            if not is_end and not is_empty:
                code, depth = name, 1
                if unread := _UNREAD.get(name):
                    start = unread.search(source, start, end).end()  # type: ignore[union-attr]
        elif name in _IS_INLINE:
            parts.append(_STAND_INS.get(name, ""))
        else:
            yield join_parts(source, parts)
            parts = []
    if not code:
        parts.append((start, end))
    yield join_parts(source, parts)
