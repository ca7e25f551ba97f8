"""What only a fresh process shows of a build that is stopped; tests/faults kills warm ones."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture(scope="session")
def long_corpus(tmp_path_factory, lines_of):
    """So many chunks that a build takes long enough to be hit."""
    path = tmp_path_factory.mktemp("long") / "long.txt"
    path.write_text("\n".join([*lines_of(320), "短"]), "utf-8")
    return path


def test_interrupt_of_a_fresh_process(tmp_path, long_corpus):
    """The console script itself answers SIGINT with 130 (and nothing is half published)."""
    out = tmp_path / "out"
    # A shell that starts the suite in the background has it ignore SIGINT.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    script += "from cecdata.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "build", str(long_corpus), "--out", str(out), "--filters",
         "levenshtein", "--shard-sentences", "5"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (out / ".cecdata/done").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (out / "data").exists()
