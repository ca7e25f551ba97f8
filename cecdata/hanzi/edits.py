"""Corruptions: where a source differs from its target, and how each turns into the other.

A corruption says that ``target[start:end]`` was written as ``source``. Offsets are code points of
the target, half-open; an insertion has ``start == end``, a deletion an empty ``source``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Corruption:
    """One change; ``operator`` and ``kind`` are empty if they are unknown."""

    start: int
    end: int
    target: str
    source: str
    operator: str = ""
    kind: str = ""


def splice(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return the text with spans (start, end) replaced; they are sorted and do not overlap.

    >>> splice("他己经来", [(1, 2, "已"), (4, 4, "了")])
    '他已经来了'
    """
    pieces: list[str] = []
    done = 0
    for start, end, written in changes:
        pieces += (text[done:start], written)
        done = end
    return "".join([*pieces, text[done:]])


def align(source: str, target: str) -> tuple[Corruption, ...]:
    """Return a minimal alignment: the Levenshtein operations from the target to the source.

    Each substituted character is an edit of its own; if characters were also added or lost in a
    run, the alignment is ambiguous, and the whole run is one edit.

    >>> [(one.start, one.end, one.target, one.source) for one in align("言吴会己径", "误会已经")]
    [(0, 1, '误', '言吴'), (2, 3, '已', '己'), (3, 4, '经', '径')]
    """
    edits: list[Corruption] = []
    for start, end, source_start, source_end in _find_runs(source, target):
        spans = [(start, end, source_start, source_end)]
        if end - start == source_end - source_start:  # an edit for each character
            shift = source_start - start
            spans = [(at, at + 1, at + shift, at + shift + 1) for at in range(start, end)]
        edits += (
            Corruption(start=a, end=b, target=target[a:b], source=source[c:d])
            for a, b, c, d in spans
        )
    return tuple(edits)


def _find_runs(source: str, target: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield the longest differing stretches as (start, end) in the target and in the source."""
    from rapidfuzz.distance import Levenshtein

    codes = Levenshtein.opcodes(target, source)  # our target is its src, our source its dest
    for is_equal, stretch in groupby(codes, lambda code: code.tag == "equal"):
        if not is_equal:
            run = list(stretch)
            yield run[0].src_start, run[-1].src_end, run[0].dest_start, run[-1].dest_end
