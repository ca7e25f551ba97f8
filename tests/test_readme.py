"""README, ARCHITECTURE and docs/paper.md say what is there, and their code runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_make_targets_exist() -> None:
    """Every `make TARGET` of the README is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", README, re.MULTILINE)) <= targets


@pytest.mark.parametrize("tool", ["cecdata", "cectrain", "cecbench"])
def test_commands_exist(tool: str) -> None:
    """Every command line of the README has a command and options that exist, and its arguments."""
    group = importlib.import_module(f"{tool}.cli").cli
    lines = re.findall(rf"^{tool} ([\w-]+)(.*)$", README, re.MULTILINE)
    assert lines
    for name, rest in lines:
        command = group.get_command(click.Context(group), name)
        assert command is not None, name
        known = {option for p in command.params for option in p.opts} | {"--help"}
        words = rest.partition("#")[0].replace("'", "").split()
        assert {word for word in words if word.startswith("--")} <= known
        command.make_context(name, words)  # raises where an argument is missing


def test_the_chinese_readme_has_the_same_code_and_figures() -> None:
    """Code blocks are equal but for comments of shell lines; so are links and tables' numbers."""
    uncommented = [re.sub(r" +#.*$", "", one, flags=re.MULTILINE) for one in blocks(README, "sh")]
    assert uncommented == [
        re.sub(r" +#.*$", "", one, flags=re.MULTILINE) for one in blocks(CHINESE, "sh")
    ]
    assert blocks(README, "python") == blocks(CHINESE, "python")
    links = [set(re.findall(r"\]\(([^)]+)\)", text)) for text in (README, CHINESE)]
    translated = {
        re.sub(r"^docs/(howto|(?=concepts))/?", "docs/zh/", link)
        for link in links[0] - {"README.zh-CN.md"}
    }
    assert translated == links[1] - {"README.md"}
    measured = (README.partition("## Measured")[2], CHINESE.partition("## 实测")[2])
    numbers = [re.findall(r"[−+]?\d[\d,.]* ?[×%]", text) for text in measured]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("page", ["docs/howto/operator.md", "docs/zh/operator.md"])
def test_rows_of_the_operators_are_what_they_write(page: str) -> None:
    """The table shows for each operator one of its candidates."""
    from cecdata.cli import cli

    text = (ROOT / page).read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)`\S* \| (\S+) \| (\S+) \|$", text, re.MULTILINE)
    assert [row[0] for row in rows] == ["homophone", "near_glyph", "radical", "split", "noise"]
    for operator, target, shown in rows[:-1]:
        before, written, after = re.split(r"\*\*", shown)
        replaced = target[len(before) : len(target) - len(after)]
        found = CliRunner().invoke(cli, ["preview", replaced, "--operator", operator])
        assert re.search(rf"^{written}\s", found.output, re.MULTILINE), (operator, found.output)


def test_rooms_of_the_architecture_exist() -> None:
    """Every room that ARCHITECTURE names in its table exists."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE):
        package = ""
        for name in re.findall(r"`([^`]+)`", row):
            package = name.split("/")[0] if "/" in name else package
            assert any(ROOT.glob(name)) or any((ROOT / package).glob(name)), name


FOLDERS = ("cecdata", "cectrain", "cecbench", "configs", "docs", "tests")
SUFFIXES = (".py", ".toml", ".md")


def test_every_cited_row_exists() -> None:
    """A citation names a row of the last table, and the rows are numbered 1, 2, 3 …"""
    page = (ROOT / "docs" / "paper.md").read_text("utf-8")
    rows = [int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert rows == list(range(1, len(rows) + 1))
    files = [p for name in FOLDERS for p in (ROOT / name).rglob("*") if p.suffix in SUFFIXES]
    cited = {
        int(number)
        for path in files
        for number in re.findall(r"docs/paper\.md row (\d+)", path.read_text("utf-8"))
    }
    assert cited
    assert cited <= set(rows)
