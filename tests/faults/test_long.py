"""The long version of what the other files do briefly: see figures.py, which prints tables."""

from __future__ import annotations

import figures
import pytest
from harness import shim

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def needed():
    library, reason = shim()
    if library is None:
        pytest.skip(reason)


def test_three_hundred_kills():
    """Builds, embeddings, benches, training; 300 SIGKILLs in all: nothing lost, nothing twice."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    assert figures.kills(list(figures.SHARES), 300, seed=20) == []


@pytest.mark.parametrize("name", list(figures.SMALL))
def test_every_call_fails(name):
    """Every k of every ordeal: an error that tells, or all of it; then the same command ends."""
    assert figures.calls([name], 1, list(figures.ORDEALS)) == []


def test_interrupts_at_any_moment():
    """SIGINT and SIGTERM all along each run: 130, and the same command goes on."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    assert figures.interrupts(list(figures.SHARES)) == []
