"""clusters.tsv: ranges of code points that must not be split from a neighbour (UAX #29)."""

from __future__ import annotations

import regex

HEADER = ["first", "last", "rule"]
RULES = {
    "before": r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=V}\p{GCB=T}]",
    # A linker (virama) binds the next consonant to the same cluster.
    "after": r"[\p{GCB=Prepend}\p{GCB=ZWJ}\p{GCB=L}\p{InCB=Linker}]",
    "pair": r"\p{GCB=Regional_Indicator}",
}


def rows() -> list[list[str]]:
    """Return one row per range of code points.

    No break may stand before the code points of ``before``, after those of ``after``, nor between
    the two of a ``pair``.
    """
    table = []
    for rule, pattern in RULES.items():
        member = regex.compile(pattern)
        points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
        points = [point for point in points if member.match(chr(point))]
        for first, last in _runs(points):
            table.append([f"{first:04X}", f"{last:04X}", rule])
    return sorted(table, key=lambda row: (row[2], int(row[0], 16)))


def _runs(points: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for point in points:
        if runs and runs[-1][1] == point - 1:
            runs[-1] = (runs[-1][0], point)
        else:
            runs.append((point, point))
    return runs
