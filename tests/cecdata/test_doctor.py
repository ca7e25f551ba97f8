"""`cecdata doctor` reports what is installed."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import tomllib
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.commands.doctor import EXTRAS


def test_json_holds_what_is_installed():
    """Cores and memory are positive, and each package has the version that Python reports."""
    facts = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).output)
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0
    assert facts["packages"]["polars"] == metadata.version("polars")
    assert "pytest" not in facts["extras"]["dev"]["missing"]


def test_every_extra_is_described():
    """The extras of pyproject.toml are those that the command explains."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert set(EXTRAS) == set(project["project"]["optional-dependencies"])


def test_text_names_each_extra():
    """People see every extra, and whether it is installed."""
    output = CliRunner().invoke(cli, ["doctor"]).output
    assert all(f"  {name:8}" in output for name in EXTRAS)
