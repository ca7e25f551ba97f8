"""Markdown for reports and cards: text from outside is escaped before it enters a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# A backslash keeps these from being read as HTML, emphasis, a link or a formula; an underscore
# within a word is none of these. GitHub turns the last two forms into links by themselves.
_SIGNS = re.compile(r"[\\`*\[\]<>#~&$]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.", re.IGNORECASE)


class Markdown(str):
    """Text that is Markdown already; `make_table` escapes every other cell."""

    __slots__ = ()


def escape_text(value: object) -> Markdown:
    """Return text from outside as one line of Markdown that shows it letter by letter."""
    return Markdown(_SIGNS.sub(r"\\\g<0>", to_one_line(str(value))))


def make_code_span(value: object) -> Markdown:
    """Return text from outside as a code span, in which no renderer looks for links."""
    line = to_one_line(str(value))
    if not line.strip():
        return Markdown(line)
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    # Markdown takes one space off both ends, which keeps a backtick there apart from the fence.
    apart = " " if line[0] in "` " or line[-1] in "` " else ""
    return Markdown(f"{fence}{apart}{line}{apart}{fence}")


def make_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markdown:
    """Return a table; cells other than `Markdown` are escaped."""
    lines = [head, [Markdown("---")] * len(head), *rows]
    return Markdown("\n".join(f"| {' | '.join(map(_escape_cell, line))} |" for line in lines))


def to_one_line(value: str) -> str:
    """Return the text with a space for each line end, form feed and separator of lines."""
    return " ".join(value.splitlines())


def _escape_cell(value: object) -> str:
    """Return a cell as Markdown whose bars are escaped.

    A table is cut at its bars before anything else is parsed, even in a code span.
    """
    return (value if isinstance(value, Markdown) else escape_text(value)).replace("|", r"\|")
