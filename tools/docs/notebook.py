"""Write docs/quickstart.ipynb from examples/quickstart.py, cell by cell.

    python tools/docs/notebook.py

A line `# %%` begins a cell of code, `# %% [markdown]` one of text, which is commented out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT, NOTEBOOK = ROOT / "examples/quickstart.py", ROOT / "docs/quickstart.ipynb"


def cells(script: str) -> list[tuple[str, str]]:
    """Return the kind (code or markdown) and the text of each cell."""
    parts = re.split(r"^# %%( \[markdown\])?\n", script, flags=re.MULTILINE)[1:]
    listed = []
    for mark, text in zip(parts[::2], parts[1::2], strict=True):
        plain = re.sub(r"^# ?", "", text, flags=re.MULTILINE) if mark else text
        listed.append(("markdown" if mark else "code", plain.strip("\n")))
    return listed


def notebook(script: str) -> str:
    """Return the notebook of a script, without output, as JSON (nbformat 4.5)."""
    document = {
        "cells": [
            {
                "cell_type": kind,
                "id": f"cell-{number}",
                "metadata": {},
                "source": text.splitlines(keepends=True),
                **({"execution_count": None, "outputs": []} if kind == "code" else {}),
            }
            for number, (kind, text) in enumerate(cells(script), 1)
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(SCRIPT.read_text("utf-8")), "utf-8")
