"""What all tests share: the profiles of hypothesis, and the folder of measuring data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test pays for compiling a kernel: a deadline would measure that.
settings.register_profile("project", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("project")


#: files that take longest; where they come last, one of two processes waits for the other
LONGEST = ("test_docs.py", "test_stores.py", "test_train.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def cec_shared() -> Path:
    """The shared folder; a test that needs it is skipped where there is none."""
    folder = os.environ.get("CEC_SHARED", "")
    if not folder:
        pytest.skip("CEC_SHARED is not set: it names the folder with measuring data")
    return Path(folder)
