"""Whatever ends a command is one line on stderr and an exit code; a traceback is in a file."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cecdata.common.command_group import INTERRUPTED, LazyGroup, run

ERRORS = {
    "recursion": (RecursionError("maximum recursion depth exceeded"), 1, "nested too deeply"),
    "eof": (EOFError("Compressed file ended"), 1, "ended too early (Compressed file ended)"),
    "bare-eof": (EOFError(), 1, "cut short"),
    "memory": (MemoryError(), 1, "out of memory: use fewer --workers"),
    "array": (MemoryError("Unable to allocate 3. GiB"), 1, "(Unable to allocate 3. GiB)"),
    "surrogate": (UnicodeEncodeError("utf-8", "ab\ud83d", 2, 3, "no"), 1, "U+D83D at position 2"),
    "ascii": (UnicodeEncodeError("ascii", "好", 0, 1, "no"), 1, "LC_ALL=C.UTF-8"),
    "disk": (OSError(5, "Input/output error", "a/b"), 1, "a/b: Input/output error"),
    "socket": (BrokenPipeError(32, "Broken pipe"), 1, "Broken pipe"),
    "exit": (SystemExit(3), 1, "ended the program: 3"),
    "bug": (KeyError("rows"), 1, "unexpected KeyError"),
    "interrupt": (KeyboardInterrupt(), INTERRUPTED, "Interrupted"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_line_and_an_exit_code(name, monkeypatch, capfd):
    """Each error is explained in one line, without a traceback; 130 is for interrupts alone."""
    error, code, expected = ERRORS[name]

    @click.command()
    def fails() -> None:
        raise error

    group = LazyGroup("tool", table={"All": {"fails": ("", "")}})
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: fails)
    assert run(group, ["fails"]) == code
    errors = capfd.readouterr().err.splitlines()
    assert len(errors) == 1
    assert expected in errors[0]


def test_the_traceback_of_a_bug_is_in_a_file(monkeypatch, capfd):
    """The line names where the error arose and a file with the whole traceback."""

    @click.command()
    def fails() -> None:
        from cecdata.hanzi.characters import words

        words("no length")  # type: ignore[arg-type]

    group = LazyGroup("tool", table={"All": {"fails": ("", "")}})
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: fails)
    assert run(group, ["fails"]) == 1
    said = capfd.readouterr().err
    assert "cecdata/hanzi/characters.py:" in said
    kept = Path(said.split(" with ")[-1].split(", which")[0])
    assert "Traceback" in kept.read_text("utf-8")
    kept.unlink()


def test_a_question_that_nobody_answers_is_no_interrupt(monkeypatch, capfd):
    """An end of the input at a question is an error (1), not an interrupt."""

    @click.command()
    def asks() -> None:
        click.confirm("Sure?", err=True)

    group = LazyGroup("tool", table={"All": {"asks": ("", "")}})
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: asks)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(group, ["asks"]) == 1
    assert "before the question was answered" in capfd.readouterr().err


@pytest.mark.parametrize("module", ["cecdata", "cecbench", "cectrain", "cecdata.cli"])
def test_a_module_is_a_program(module):
    """`python -m` runs the command line."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: ")
