"""The paper's tables as data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cecdata.common.errors import UsageError, did_you_mean

FOLDER = Path(__file__).parent / "tables"
NAMES = ("main", "cs_breakdown", "ablation", "scaling", "encoders")
SETS = ("CAR", "COT", "ENC", "GAM", "MEC", "NEW", "NOV", "CSCD", "CS")
#: column of the paper's table → benchmark
BENCHMARK_OF_SET = {
    **{name: f"lemon/{name.lower()}" for name in SETS[:7]},
    "CSCD": "cscd-ns/test",
    "CS": "cs",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its cells as text, '' for empty ones."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def number(self, row: tuple[str, ...], column: str) -> float | None:
        """Return the value of a cell; None if it is empty."""
        text = row[self.columns.index(column)]
        return float(text) if text else None


@cache
def table(name: str) -> Table:
    """Return a table by name; raise UsageError for an unknown one.

    >>> main = table("main")
    >>> len(main.rows), main.rows[-1][0], main.number(main.rows[-1], "MEC")
    (21, 'Qwen3-32B-RL', 74.87)
    """
    if name not in NAMES:
        raise UsageError(f"no published table {name!r}: {did_you_mean(name, list(NAMES))}")
    lines = (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    cells = [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]
    return Table(name, cells[0], tuple(cells[1:]))
