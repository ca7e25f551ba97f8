"""Reading of the generated tables in ``tables/`` (their origin: ``tables/SOURCES.md``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

TABLES = Path(__file__).parent / "tables"


@cache
def table(name: str) -> dict[str, tuple[str, ...]]:
    """The rows of ``tables/<name>.tsv`` by their first column, the header line left out.

    Cells stay text: the module that owns a table parses a cell when it is asked for, so that
    loading costs no more than splitting lines.

    >>> table("characters")["好"][:2]
    ('1', '6')
    """
    lines = (TABLES / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
    cells = (line.split("\t") for line in lines[1:] if line)
    return {row[0]: tuple(row[1:]) for row in cells}
