"""docs/paper.md holds every row that code, recipes and pages cite."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("cecdata", "cectrain", "cecbench", "configs", "docs", "tests")
SUFFIXES = (".py", ".toml", ".md")


def test_every_cited_row_exists() -> None:
    """A citation names a row of the last table, and the rows are numbered 1, 2, 3 …"""
    page = (ROOT / "docs" / "paper.md").read_text("utf-8")
    rows = [int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert rows == list(range(1, len(rows) + 1))
    files = [p for name in FOLDERS for p in (ROOT / name).rglob("*") if p.suffix in SUFFIXES]
    cited = {
        int(number)
        for path in files
        for number in re.findall(r"docs/paper\.md row (\d+)", path.read_text("utf-8"))
    }
    assert cited
    assert cited <= set(rows)
