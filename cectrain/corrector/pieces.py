"""Long texts in pieces that a model can read.

A line that fits is one piece, else each of its sentences is, because policies are trained on single
sentences: reading several together made the built-in policy leave 40 % more errors alone. The
clauses of a sentence that is too long are read with the end of the piece before them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINES = re.compile(r"[^\n]*\n+|[^\n]+")
# Closing quotation marks and brackets belong to the sentence before them.
_SENTENCES = re.compile(r"[^。！？；…!?;]*[。！？；…!?;]+[”’」』）》】]*|[^。！？；…!?;]+")
_CLAUSES = re.compile(r"(?:[^，、,]|,(?=\d))*(?:[，、]|,(?!\d))|(?:[^，、,]|,(?=\d))+")
_CONTEXT = 0.25  # most text that is read before a clause, as a share of the longest


@dataclass(frozen=True, slots=True)
class Piece:
    """`text[start:end]`, asked together with `text[context:start]`; offsets in code points."""

    context: int
    start: int
    end: int


def pieces(text: str, longest: int | None) -> list[Piece]:
    """Return the pieces that a text is asked in, in order; together they are the text.

    longest: characters of a question, white space at its ends not counted; None: no limit, a line
    is one piece. What has no punctuation mark to cut at makes a piece that is too long.

    >>> text = "他来了。我也来了，你呢，他呢？"
    >>> [text[piece.start : piece.end] for piece in pieces(text, 8)]
    ['他来了。', '我也来了，你呢，', '他呢？']
    """
    made: list[Piece] = []
    at, limit = 0, longest or len(text)
    for line in _LINES.findall(text):
        whole = len(line.strip()) <= limit
        for sentence in [line] if whole else _SENTENCES.findall(line):
            made += _of_sentence(text, at, at + len(sentence), limit)
            at += len(sentence)
    return made


def _of_sentence(text: str, start: int, end: int, limit: int) -> list[Piece]:
    if len(text[start:end].strip()) <= limit:
        return [Piece(start, start, end)]
    made: list[Piece] = []
    starts: list[int] = []  # of the clauses so far
    at = start
    for clause in _CLAUSES.findall(text[start:end]):
        after = at + len(clause)
        if made and len(text[made[-1].context : after].strip()) <= limit:
            made[-1] = Piece(made[-1].context, made[-1].start, after)
        else:
            near = (s for s in starts[-8:] if at - s <= _CONTEXT * limit and after - s <= limit)
            made.append(Piece(min(near, default=at), at, after))
        starts.append(at)
        at = after
    return made
