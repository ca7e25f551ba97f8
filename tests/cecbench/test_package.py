"""The package's own interface, `cecbench.score`, and the signatures of its scores."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import cecbench
from cecbench import scorers
from cecbench.scorers import Options, score
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


SIGNED = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "今天好", "今天好", "今天好")]
OTHER = [("1", "他己经来", "他已经来", "他己经来"), ("2", "今天好", "今天好", "今天好")]


def test_two_systems_on_one_benchmark_share_their_signature() -> None:
    """The signature depends on the benchmark's sentences, but not on the predictions."""
    mine, theirs = score(SIGNED, "cscd", "revert"), score(OTHER, "cscd", "revert")
    assert mine.signature == theirs.signature
    assert mine.signature.differences(theirs.signature) == ()
    moved = score([("1", "他己经来", "他已经走", "他已经走"), SIGNED[1]], "cscd", "revert")
    assert [name for name, *_ in mine.signature.differences(moved.signature)] == ["benchmark"]


def test_whatever_moves_a_number_moves_the_signature() -> None:
    """Policy, projection and mode show in the signature's line."""
    made = [
        score(SIGNED, "cscd", "revert"),
        score(SIGNED, "cscd", "drop"),
        score(SIGNED, "cllm", options=Options(projection="difflib")),
        score(SIGNED, "cllm", options=Options(projection="cherrant")),
        score(SIGNED, "cherrant"),
        score(SIGNED, "cherrant", options=Options(mode="first")),
        score(SIGNED, "cherrant", options=Options(mode="nosimp")),
    ]
    assert len({result.signature.short() for result in made}) == len(made)
    assert made[1].signature.rows == "1/2"
    assert made[4].signature.opencc != "none"
    assert made[6].signature.opencc == "none"


def test_differences_name_the_field_and_both_values() -> None:
    """Each field that differs is named with both values."""
    mine = score(SIGNED, "cscd", "revert").signature
    theirs = dataclasses.replace(mine, beta=0.5, version="9")
    assert mine.differences(theirs) == (("beta", 1.0, 0.5), ("version", mine.version, "9"))
