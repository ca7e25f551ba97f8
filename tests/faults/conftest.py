"""Lets the tests of this folder import the harness beside them; skips what this machine cannot."""

import os
import tempfile
from pathlib import Path

import harness
import pytest


@pytest.fixture(scope="session")
def room(tmp_path_factory):
    """A folder in memory where there is one: a sync costs nothing there, and a kill is a kill."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        with tempfile.TemporaryDirectory(prefix="cec-faults-", dir=memory) as folder:
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("faults")


@pytest.fixture
def place(room, request):
    """A folder of this test's own."""
    with tempfile.TemporaryDirectory(dir=room) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def zygote():
    """Warm cecdata and cecbench, under the shim where it can be compiled."""
    return harness.shared()


@pytest.fixture(scope="session")
def shimmed(zygote):
    """The same, or a skip with the reason."""
    library, reason = harness.shim()
    if library is None:
        pytest.skip(reason)
    return zygote


@pytest.fixture(scope="session")
def trainer(room):
    """Warm cectrain."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    found = harness.Zygote(room / "train-log.txt", "cectrain")
    yield found
    found.close()
