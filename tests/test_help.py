"""What `--help` prints, for every command of every package."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import cecbench.cli
import cecdata.cli
import cectrain.cli
from cecdata.common.errors import how_to_install


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name)


_GROUPS = {"cecdata": cecdata.cli.cli, "cecbench": cecbench.cli.cli, "cectrain": cectrain.cli.cli}
_ALL = [(tool, path) for tool, group in _GROUPS.items() for path in _commands(group)]


@pytest.mark.parametrize(("tool", "path"), _ALL, ids=[" ".join((t, *p)) for t, p in _ALL])
def test_help_reads_well(tool: str, path: tuple[str, ...]) -> None:
    """Every command explains itself and has a command line of its own as an example; click's mark
    for a paragraph is not printed."""
    done = CliRunner().invoke(_GROUPS[tool], [*path, "--help"])
    assert done.exit_code == 0, done.output
    assert "\\b" not in done.output
    assert "\b" not in done.output
    first = done.output.split("\n\n")[1].strip() if "\n\n" in done.output else ""
    assert first, "no description"
    assert not first.startswith("Options:"), "no description"
    _, _, after_usage = done.output.partition("\n")
    assert re.search(rf"\b{' '.join((tool, *path))}( |$)", after_usage, re.MULTILINE)


@pytest.mark.parametrize("tool", _GROUPS)
def test_a_shell_completes_commands_and_options(tool: str) -> None:
    """Bash loads the script, and what it asks of the tool is answered with names and options."""
    source = {f"_{tool.upper()}_COMPLETE": "bash_source"}
    printed = CliRunner().invoke(_GROUPS[tool], prog_name=tool, env=source)
    loaded = subprocess.run(
        ["bash", "-c", f"{printed.output}\ncomplete -p {tool}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_{tool}_completion" in loaded.stdout
    first = next(iter(_GROUPS[tool].list_commands(click.Context(_GROUPS[tool]))))
    for words, place, expected in (
        (f"{tool} {first[:-1]}", "1", f"plain,{first}"),
        (f"{tool} {first} --he", "2", "plain,--help"),
    ):
        asked = CliRunner().invoke(
            _GROUPS[tool],
            prog_name=tool,
            env={
                "COMP_WORDS": words,
                "COMP_CWORD": place,
                f"_{tool.upper()}_COMPLETE": "bash_complete",
            },
        )
        assert expected in asked.output.splitlines()


def test_a_mistyped_option_is_answered_with_the_nearest() -> None:
    """The message names what exists, for options, commands and choices."""
    for words, expected in (
        (["build", "--copeis", "3"], "--copies"),
        (["bild"], "'build'"),
        (["build", "sample", "--out", "x", "--engine", "locl"], "'local'"),
    ):
        done = CliRunner().invoke(_GROUPS["cecdata"], words)
        assert done.exit_code == 2
        assert expected in done.output


def test_what_a_message_tells_to_install_needs_no_index() -> None:
    """`cec-zero` is on no package index: pip finds the extras of the one that is installed."""
    pytest.importorskip("pip")
    words = how_to_install("script").removeprefix("run pip ").replace("'", "").split()
    command = [sys.executable, "-m", "pip", *words, "--dry-run", "--no-index"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied: cec-zero[script]" in done.stdout
    for package in _GROUPS:
        for path in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            assert "pip install -e" not in path.read_text("utf-8"), path


def test_make_help_shows_each_target_as_it_is_typed() -> None:
    """`make help` prints a variable with one dollar sign, as a shell reads it."""
    root = Path(__file__).parents[1]
    done = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True)
    assert "$CECBENCH_DATA" in done.stdout
    assert "$$" not in done.stdout
