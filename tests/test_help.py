"""What `--help` prints, for every command of every package."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import cecbench.cli
import cecdata.cli
import cectrain.cli


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
    """Every command explains itself, and click's mark for a paragraph is not printed."""
    done = CliRunner().invoke(_GROUPS[tool], [*path, "--help"])
    assert done.exit_code == 0, done.output
    assert "\\b" not in done.output
    assert "\b" not in done.output
    first = done.output.split("\n\n")[1].strip() if "\n\n" in done.output else ""
    assert first, "no description"
    assert not first.startswith("Options:"), "no description"


def test_no_message_advises_a_package_that_is_not_published() -> None:
    """What a message tells to install works in a clone; `cec-zero` is on no package index."""
    root = Path(__file__).parents[1]
    for package in _GROUPS:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text("utf-8")
            assert not re.search(r"pip install '?cec-zero|cec-zero\[", text), path


def test_make_help_shows_each_target_as_it_is_typed() -> None:
    """`make help` prints a variable with one dollar sign, as a shell reads it."""
    root = Path(__file__).parents[1]
    done = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True)
    assert "$CECBENCH_DATA" in done.stdout
    assert "$$" not in done.stdout
