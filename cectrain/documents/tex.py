"""LaTeX: the text of a document, without commands, formulas, listings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cectrain.documents.document import OBJECT, Parts, Passage, join_parts

_LISTINGS = "verbatim|Verbatim|lstlisting|minted|comment|filecontents"
_FORMULAS = "math|displaymath|equation|align|alignat|gather|multline|flalign|eqnarray|tikzpicture"
#: commands whose last argument is prose: within a sentence, beside it, or between two
_STYLES = "text(?:bf|it|rm|sf|tt|sl|sc|md|up|normal)|emph|underline|uline|uwave|mbox|fbox"
_ASIDES = "footnote|footnotetext|thanks|marginpar"
_HEADS = "part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|title|author|caption"
_OPTION = r"[ \t]*\[[^\[\]\n]*\]"
_TOKEN = re.compile(
    rf"""
      (?P<comment>%[^\n]*\n?[ \t]*)
    | (?P<object>
        \\begin\{{(?P<code>(?:{_LISTINGS}|{_FORMULAS})\*?)\}}(?s:.*?)(?:\\end\{{(?P=code)\}}|\Z)
      | \\(?:verb|lstinline)\*?(?:{_OPTION})?(?P<sign>[^\s\w])[^\n]*?(?P=sign)
      | \$\$[^$]*\$\$ | \$(?:[^$\\\n]|\\.|\n(?![ \t]*\n))+\$
      | \\\((?:[^\\]|\\[^()])*\\\) | \\\[(?:[^\\]|\\[^\[\]])*\\\])
    | (?P<style>\\(?:{_STYLES}|(?:href|textcolor|colorbox)\{{[^{{}}]*\}})\{{)
    | (?P<aside>\\(?:{_ASIDES})(?:{_OPTION})?\{{)
    | (?P<head>\\(?:{_HEADS})\*?(?:{_OPTION})?\{{)
    | (?P<end>\n[ \t]*\n\s* | & | \\item\b(?:{_OPTION})? | \\par\b
      | \\(?:begin|end)\{{[^{{}}]*\}}(?:{_OPTION}|\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}})*)
    | (?P<command>\\[A-Za-z@]+\*?(?:{_OPTION})*\{{)
    | (?P<switch>\\[A-Za-z@]+\*?(?:{_OPTION})*[ \t]*)
    | (?P<space>\\\\(?:{_OPTION})? | ~)
    | (?P<escape>\\.)
    | (?P<open>\{{) | (?P<close>\}})
    """,
    re.VERBOSE,
)
#: what opens groups of the sentence around them, and groups that are passages of their own
_WITHIN, _APART = {"style", "open"}, {"aside", "head"}
_MORE = re.compile(rf"(?:{_OPTION})*[ \t]*\{{")  # a further argument of a command


def find_passages(source: str) -> Iterator[Passage]:
    """Yield paragraphs, headings, captions, cells and footnotes.

    A group of braces belongs to the sentence around it, or is a passage of its own, or is hidden
    as an argument of a command, with all groups in it.
    """
    parts: Parts = []
    groups: list[tuple[str, Parts]] = []  # those open: what opened each, the parts before it
    at = hidden = 0  # place; how many of the groups are arguments of commands
    while match := _TOKEN.search(source, at):
        parts.append((at, match.start()))
        at, kind = match.end(), str(match.lastgroup)
        if kind in {"end", "head"}:
            if not hidden:
                yield join_parts(source, parts)
            parts = []
        if kind in _WITHIN | _APART | {"command"}:
            groups.append((kind, parts))
            parts = parts if kind in _WITHIN else []
            hidden += kind == "command"
        elif kind == "close" and groups:
            opened, before = groups.pop()
            if opened in _APART and not hidden:
                yield join_parts(source, parts)
            if opened not in _WITHIN:
                parts = before
            if opened == "command":
                hidden -= 1
                parts.append(OBJECT)
                if more := _MORE.match(source, at):
                    groups.append((opened, parts))
                    parts, at, hidden = [], more.end(), hidden + 1
        elif kind in {"object", "space"}:
            parts.append(OBJECT if kind == "object" else " ")
        elif kind == "escape":
            parts.append(match[0][1:])
    if not hidden:
        yield join_parts(source, [*parts, (at, len(source))])
