"""Edits that write whitespace, as the SIGHAN family's scripts read them back from their files.

The scripts write a sentence's edits to a line, `id, place, character, place, character`, and strip
the line when they read it. Paddle splits it at single spaces: it stops at an edit that writes a
space before another edit, and keeps only the place of a last edit that writes whitespace. ReaLiSe,
SCOPE and CLTC split it at comma and space, and stop if the last edit writes whitespace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics.positions import BoolArray, IntArray
from cecbench.metrics.rows import Row

Edits = list[tuple[int, str]]


def paddle(rows: Sequence[Row], right: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return per row: whether Paddle takes it for corrected, and whether it stops there.

    right: the rows with an error whose prediction is the target.
    """
    hits, stops = right.copy(), np.zeros(len(rows), dtype=np.bool_)
    for index in _with_whitespace(rows):
        meant, said = (_edits(rows[index], text) for text in rows[index][2:])
        stops[index] = any(c == " " for edits in (meant, said) for _, c in edits[:-1])
        hits[index] = bool(said) and _left(meant) == _left(said)
    return hits, stops


def blank_ends(rows: Sequence[Row]) -> tuple[IntArray, ...]:
    """Return four arrays, shape (rows,).

    They hold the number of sides whose last edit writes whitespace, the sum of these edits' places
    (from 1), and both again after edits that write 地 or 得 were removed.
    """
    blanks = np.zeros((4, len(rows)), dtype=np.int64)
    for index in _with_whitespace(rows):
        for text in rows[index][2:]:
            edits = _edits(rows[index], text)
            kept = [edit for edit in edits if edit[1] not in "地得"]
            for at, side in ((0, edits), (2, kept)):
                if side and side[-1][1].isspace():
                    blanks[at : at + 2, index] += (1, side[-1][0])
    return tuple(blanks)


def _with_whitespace(rows: Sequence[Row]) -> list[int]:
    """Return the indexes of rows whose target or prediction has whitespace, which are few."""
    return [
        index
        for index, row in enumerate(rows)
        if any(len("".join(text.split())) != len(text) for text in row[2:])
    ]


def _edits(row: Row, text: str) -> Edits:
    pairs = zip(row.source, text, strict=False)
    return [(place, b) for place, (a, b) in enumerate(pairs, start=1) if a != b]


def _left(edits: Edits) -> Edits:
    """Return the edits that Paddle reads with both place and character."""
    return edits[:-1] if edits and edits[-1][1].isspace() else edits
