"""The package's own interface: `cecbench.score`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cecbench
from cecbench import scorers
from cecdata.common.errors import UsageError

SOURCES = ["他己经来了。", "今天好。", "明天在见。"]
TARGETS = ["他已经来了。", "今天好。", "明天再见。"]
PREDICTIONS = ["他已经来了。", "今天很好。", "明天在见。"]
ROWS = [(str(n), *row) for n, row in enumerate(zip(SOURCES, TARGETS, PREDICTIONS, strict=True), 1)]


@pytest.mark.parametrize("scorer", sorted(scorers.SCORERS))
def test_three_columns_score_as_rows_do(scorer: str) -> None:
    """Columns, whatever they can be iterated from, give the score of the rows made of them."""
    result = cecbench.score(iter(SOURCES), tuple(TARGETS), PREDICTIONS, scorer=scorer)
    rows = scorers.score(ROWS, scorer)
    assert result.values == rows.values
    assert (result.counts == rows.counts).all()


def test_options_reach_the_scorer() -> None:
    """Policy, projection and mode are those of the command line, and bad ones are refused."""
    columns = (SOURCES, TARGETS, PREDICTIONS)
    assert cecbench.score(*columns, policy="drop").values["rows_scored"] == 2
    projected = cecbench.score(*columns, scorer="cllm", projection="difflib")
    assert projected.values["projection"] == "difflib"
    with pytest.raises(UsageError, match="--mode is for the scorer cherrant, not for cscd"):
        cecbench.score(*columns, mode="first")


def test_columns_of_different_lengths_are_refused() -> None:
    """A missing prediction is named, instead of scoring the rows before it."""
    with pytest.raises(UsageError, match="3 sources, 3 targets, 2 predictions"):
        cecbench.score(SOURCES, TARGETS, PREDICTIONS[:2])


def test_importing_the_package_loads_nothing() -> None:
    """`import cecbench` loads no library, and no module of the package takes the name `score`."""
    code = "import sys, cecbench; print(*{'numpy', 'click', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    folder = Path(cecbench.__file__).parent
    assert not (folder / "score.py").exists()
    assert not (folder / "score").exists()
