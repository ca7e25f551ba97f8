"""The command line's options that say how answers are scored; `score` and `run` share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from cecbench.cherrant.costs import Dictionaries
from cecbench.metrics.cherrant import MODES
from cecbench.metrics.cllm import PROJECTIONS
from cecbench.metrics.policies import POLICIES
from cecbench.scorers import SCORERS, Options

Command = TypeVar("Command", bound=Callable[..., object])

_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option(
        "--scorer", default="cscd", show_default=True, help=f"One of {', '.join(SCORERS)}."
    ),
    click.option("--policy", help=f"Rows of other lengths: {', '.join(POLICIES)}."),
    click.option("--projection", help=f"For cllm: {', '.join(PROJECTIONS)}."),
    click.option("--mode", help=f"For cherrant: {', '.join(MODES)}."),
    click.option("--cilin", type=_FILE, help="Cilin, for ChERRANT's own substitution costs."),
    click.option("--confusion", type=_FILE, help="A confusion list, likewise."),
)
NAMES = ("scorer", "policy", "projection", "mode", "cilin", "confusion")


def scoring_options(command: Command) -> Command:
    """Adds the options that say how answers are scored."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def scoring_from(given: Mapping[str, object]) -> Options:
    """The record of the given options, the scorer's name apart."""
    texts = {name: _text(given[name]) for name in ("policy", "projection", "mode")}
    files = {name: _path(given[name]) for name in ("cilin", "confusion")}
    return Options(**texts, dictionaries=Dictionaries(**files))


def _text(value: object) -> str | None:
    assert value is None or isinstance(value, str)
    return value


def _path(value: object) -> Path | None:
    assert value is None or isinstance(value, Path)
    return value
