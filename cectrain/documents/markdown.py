"""Markdown, as CommonMark has it, with front matter, tables, formulas, footnotes and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from cecdata.common.errors import InputError
from cectrain.documents import tags
from cectrain.documents.document import OBJECT, Passage, Span, join_parts

_LONGEST = 100_000  # characters of a line; the time of the parser may grow with their square
_CODE = re.compile(rf"<(?i:({tags.CODE}))\b[^<>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_FRONT = re.compile(r"\+\+\+[^\S\n]*\n(?s:.*?)\n\+\+\+[^\S\n]*(?=\n|\Z)")  # of TOML
_LABEL = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*\[\^[^\]\n]+\]:")  # of a footnote
_RUN = re.compile(r"\s*\n\s*|\S+|[^\S\n]+")


class _Mark(NamedTuple):
    """A span of a block's content that is no prose, what stands for it, and its signs."""

    start: int
    end: int
    stand_in: str = ""
    signs: tuple[Token, ...] = ()  # of emphasis, which is text where it has no counterpart


def find_passages(source: str) -> Iterator[Passage]:
    """Yield headings, paragraphs and cells, and the prose of blocks of HTML.

    Raises InputError where a line is too long to be parsed.
    """
    if front := _FRONT.match(source):
        # blank, so that the places of what follows stay
        source = re.sub(r"[^\n]", " ", front[0]) + source[front.end() :]
    sizes = [len(line) + 1 for line in source.split("\n")]
    if max(sizes) > _LONGEST:
        raise InputError(f"has a line of {max(sizes):,} characters: at most {_LONGEST:,} are read")
    starts = [0, *accumulate(sizes)]
    marks: dict[int, list[_Mark]] = {}  # filled by the parser, by the id of a block's tokens
    at = 0  # where the source of the next block is looked for
    for token in _make_parser(marks).parse(source):
        first, last = token.map or (0, 0)
        if token.type == "html_block":
            yield from tags.find_passages(source, starts[first], starts[last])
        elif token.type == "inline":
            at = max(at, starts[first])
            if label := _LABEL.match(source, at):
                at = label.end()
            at, places = _locate(source, token.content, at)
            code = [_Mark(*match.span(), OBJECT) for match in _CODE.finditer(token.content)]
            inside = [*marks.get(id(token.children), []), *code]
            yield join_parts(source, _find_parts(token.content, places, inside))


def _locate(source: str, content: str, at: int) -> tuple[int, list[int]]:
    """Return where a block ends in the source, and where each character of its content stands.

    Marks of lists and quotations may stand before each line. The place of each character of a line
    is -1 where the source does not have the line: a cell whose vertical bar has a backslash there.
    """
    places: list[int] = []
    for line in content.split("\n"):
        begin = source.find(line.strip(), at)
        indented = begin - (len(line) - len(line.lstrip()))  # with the white space before it
        size = len(line) + 1  # with the break behind it
        places += range(indented, indented + size) if begin >= 0 else [-1] * size
        at = max(at, begin + len(line.strip()))
    return at, places


def _find_parts(content: str, places: list[int], marks: list[_Mark]) -> Iterator[Span | str]:
    """Yield the places in the source of the prose between marks, and what stands for the marks.

    places: of each character of the content, as `_locate` returns them. Of marks within another
    one, only the outer one counts.
    """
    done = 0
    for start, end, stand_in, signs in [*sorted(marks), _Mark(len(content), len(content))]:
        if [sign.type for sign in signs] == ["text"]:
            continue  # a single sign; `**` beside a mark of punctuation is meant, though none
        for run in _RUN.finditer(content, done, max(start, done)):
            begin = places[run.start()]
            yield " " if begin < 0 or "\n" in run[0] else (begin, begin + len(run[0]))
        if start >= done:
            begin = places[start] if start < end else -1
            yield (begin, begin + end - start, stand_in) if begin >= 0 else stand_in
        done = max(done, end)


def _make_parser(marks: dict[int, list[_Mark]]) -> MarkdownIt:
    """Return a parser that notes the marks of each list of tokens, by its id."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.use(front_matter_plugin).use(dollarmath_plugin, allow_digits=False, double_inline=True)
    parser.core.ruler.enableOnly(["normalize", "block", "inline"])
    parser.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True)
    for rule in parser.inline.ruler.__rules__:
        if rule.name not in {"text", "newline"}:
            rule.fn = _note_marks(rule.name, rule.fn, marks)
    return parser


def _note_marks(
    name: str, rule: Callable[[StateInline, bool], bool], marks: dict[int, list[_Mark]]
) -> Callable[[StateInline, bool], bool]:
    """Return a rule of the parser that also notes what it has taken."""

    def take(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        has_label = name == "link" and not silent and state.src[start] == "["
        label_end = 0
        if has_label:
            label_end = state.md.helpers.parseLinkLabel(state, start, disableNested=True)
        taken = rule(state, silent)
        if silent or not taken:
            return taken
        noted = marks.setdefault(id(state.tokens), [])
        if has_label:
            noted += [_Mark(start, start + 1), _Mark(label_end, state.pos)]
        elif name in {"emphasis", "strikethrough"}:
            noted.append(_Mark(start, state.pos, "", tuple(state.tokens[count:])))
        elif name in {"escape", "entity"}:
            noted.append(_Mark(start, state.pos, state.tokens[-1].content or " "))
        else:
            is_markup = name in {"html_inline", "footnote_ref"}
            noted.append(_Mark(start, state.pos, "" if is_markup else OBJECT))
        return True

    return take
