"""A reader that goes away before all is written, as `| head` does, is no error."""

from __future__ import annotations

import subprocess
import sys

import pytest

SENTENCES = "".join(f"第{n}号列车将于今天晚上准时到达本站的站台。\n" for n in range(300))
COMMANDS = (
    ("--help",),
    ("preview", "他的病情已经好转。", "--copies", "2", "--json"),
    ("build", "a.txt", "--out", "out", "--filters", "levenshtein", "--copies", "1"),
    ("build", "a.txt", "--out", "out", "--filters", "levenshtein", "--copies", "1", "--json"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipes")
    (folder / "a.txt").write_text(SENTENCES, "utf-8")
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: f"{words[0]}{words[-1]}")
def test_a_reader_that_has_gone(place, words):
    """Exit code 0 and not a word on stderr."""
    program = [sys.executable, "-c", "from cecdata.cli import main; main()", *words]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()
        said = [line for line in errors.splitlines() if not line.startswith("Compil")]
        assert (running.wait(120), said) == (0, [])
