"""The notebook for newcomers is the script, cell by cell, and runs from top to bottom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples/quickstart.py"
LIMIT_S = 300  # five minutes


def code_of_the_notebook() -> list[str]:
    document = json.loads((ROOT / "docs/quickstart.ipynb").read_text("utf-8"))
    return ["".join(c["source"]) for c in document["cells"] if c["cell_type"] == "code"]


def test_the_cells_are_the_blocks_of_the_script():
    """In order and letter by letter: the code of the script without its comments of text."""
    blocks = SCRIPT.read_text("utf-8").split("# %%")[1:]
    code = [text.strip("\n") for text in blocks if not text.startswith(" [markdown]")]
    assert code_of_the_notebook() == code


def test_the_notebook_is_written_by_its_tool():
    """`python tools/docs/notebook.py` would change nothing."""
    sys.path.insert(0, str(ROOT / "tools/docs"))
    from notebook import notebook

    written = (ROOT / "docs/quickstart.ipynb").read_text("utf-8")
    assert notebook(SCRIPT.read_text("utf-8")) == written


def test_the_cells_run_from_top_to_bottom(tmp_path):
    """In an empty folder and within five minutes; a page is written and an error corrected."""
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    done = subprocess.run(
        [sys.executable, "-c", "\n\n".join(code_of_the_notebook())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert "他的病情己经好转。 → 他的病情已经好转。" in done.stdout
    assert (tmp_path / "out/quickstart/report.html").is_file()
