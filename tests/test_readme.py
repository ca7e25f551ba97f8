"""The README says only what is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_make_targets_exist() -> None:
    """Every `make TARGET` of the README is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", README, re.MULTILINE)) <= targets


@pytest.mark.parametrize("tool", ["cecdata", "cectrain", "cecbench"])
def test_commands_exist(tool: str) -> None:
    """Every command line of the README names a command that is there, with options that it has."""
    table = importlib.import_module(f"{tool}.cli").COMMANDS
    lines = re.findall(rf"^\.venv/bin/{tool} ([\w-]+)(.*)$", README, re.MULTILINE)
    assert lines
    for name, rest in lines:
        module, _, attribute = table[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        known = {option for p in command.params for option in p.opts} | {"--help"}
        assert set(re.findall(r"--[a-z-]+", rest.partition("#")[0])) <= known


def test_rows_of_the_operators_are_what_they_write() -> None:
    """What the README's table shows for an operator is among its candidates."""
    from cecdata.cli import cli

    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|$", README, re.MULTILINE)
    assert [row[0] for row in rows] == ["homophone", "near_glyph", "radical", "split", "noise"]
    for operator, target, shown in rows[:-1]:
        before, written, after = re.split(r"\*\*", shown)
        replaced = target[len(before) : len(target) - len(after)]
        found = CliRunner().invoke(cli, ["inspect", operator, replaced])
        assert re.search(rf"^{written}\s", found.output, re.MULTILINE), (operator, found.output)


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
)
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link of the top-level pages leads to a file of the repository."""
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_rooms_of_the_architecture_exist() -> None:
    """Every room that ARCHITECTURE names in its table exists."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE):
        package = ""
        for name in re.findall(r"`([^`]+)`", row):
            package = name.split("/")[0] if "/" in name else package
            assert any(ROOT.glob(name)) or any((ROOT / package).glob(name)), name
