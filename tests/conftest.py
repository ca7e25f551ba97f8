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


@pytest.fixture(scope="session")
def cec_shared() -> Path:
    """The shared folder; a test that needs it is skipped where there is none."""
    folder = os.environ.get("CEC_SHARED", "")
    if not folder:
        pytest.skip("CEC_SHARED is not set: it names the folder with measuring data")
    return Path(folder)
