"""The reader of the generated tables in ``tables/`` (their origin: ``tables/SOURCES.md``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

TABLES = Path(__file__).parent / "tables"


def rows(name: str) -> list[tuple[str, ...]]:
    """Return the rows of ``tables/<name>.tsv``, without the header line."""
    lines = (TABLES / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
    return [tuple(line.split("\t")) for line in lines[1:] if line]


@cache
def table(name: str) -> dict[str, tuple[str, ...]]:
    """Return the other cells of each row by its first cell, for tables with one row per character.

    Cells stay text: the module that owns a table parses a cell on demand, so that loading costs no
    more than splitting lines.

    >>> table("characters")["好"][:2]
    ('1', '6')
    """
    return {row[0]: row[1:] for row in rows(name)}
