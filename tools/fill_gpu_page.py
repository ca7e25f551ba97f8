"""Put the figures of benchmarks/measure_gpu.py into docs/reports/gpu.md.

python tools/fill_gpu_page.py out/gpu.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reports" / "gpu.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def filled(page: str, found: dict[str, Any]) -> str:
    """Return the page with the figures between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        sys.exit(f"{PAGE}: needs the lines {BEGIN.strip()} and {END.strip()}")
    packages = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    lines = [f"{found['card']}; {packages}", "", "| measured | figure | value |"]
    lines.append("| --- | --- | ---: |")
    for title, figures in found["figures"].items():
        lines += [f"| {title} | {name} | {value:,.3f} |" for name, value in figures.items()]
    lines += [f"| {title} | missing | {why} |" for title, why in found["missing"].items()]
    return before + BEGIN + "\n".join(lines) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(Path(sys.argv[1]).read_text())))
