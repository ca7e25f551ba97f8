"""What the SIGHAN family's scripts read back of edits that write whitespace.

They write a sentence's edits on a line, `id, place, character, place, character`, and take
whitespace off its end when they read it. Paddle splits the line at single spaces: it stops at a
space with another edit behind it, and of a whitespace at the end only the place is left. ReaLiSe,
SCOPE and CLTC split it at comma and space, and stop where the last edit writes whitespace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cecbench.metrics.positions import BoolArray, IntArray
from cecbench.metrics.rows import Row

Edits = list[tuple[int, str]]


def paddle(rows: Sequence[Row], right: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Per row: whether Paddle takes it for set right, and whether it stops there.

    right: the rows with an error whose prediction is the target.
    """
    hits, stops = right.copy(), np.zeros(len(rows), dtype=np.bool_)
    for index in _with_whitespace(rows):
        meant, said = (_edits(rows[index], text) for text in rows[index][2:])
        stops[index] = any(c == " " for edits in (meant, said) for _, c in edits[:-1])
        hits[index] = bool(said) and _left(meant) == _left(said)
    return hits, stops


def blank_ends(rows: Sequence[Row]) -> tuple[IntArray, ...]:
    """Per row: sides whose last edit writes whitespace, the sum of their places (from 1); and both
    once more without the edits that write 地 or 得.
    """
    found = np.zeros((4, len(rows)), dtype=np.int64)
    for index in _with_whitespace(rows):
        for text in rows[index][2:]:
            edits = _edits(rows[index], text)
            kept = [edit for edit in edits if edit[1] not in "地得"]
            for at, side in ((0, edits), (2, kept)):
                if side and side[-1][1].isspace():
                    found[at : at + 2, index] += (1, side[-1][0])
    return tuple(found)


def _with_whitespace(rows: Sequence[Row]) -> list[int]:
    """The rows whose target or prediction holds whitespace: few, and the others need no look."""
    return [
        index for index, row in enumerate(rows)
        if any(len("".join(text.split())) != len(text) for text in row[2:])
    ]  # fmt: skip


def _edits(row: Row, text: str) -> Edits:
    pairs = zip(row.source, text, strict=False)
    return [(place, b) for place, (a, b) in enumerate(pairs, start=1) if a != b]


def _left(edits: Edits) -> Edits:
    """Places with their characters, as far as both were read."""
    return edits[:-1] if edits and edits[-1][1].isspace() else edits
