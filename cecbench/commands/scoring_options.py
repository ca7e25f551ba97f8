"""Options of the command line that say how answers are scored; `score` and `run` share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from cecbench.cherrant.costs import Dictionaries
from cecbench.commands.sections import SectionOption
from cecbench.metrics.cherrant import MODES
from cecbench.metrics.cllm import PROJECTIONS
from cecbench.metrics.policies import POLICIES
from cecbench.scorers import SCORERS, Options

Command = TypeVar("Command", bound=Callable[..., object])

_FILE = click.Path(path_type=Path)
_OPTIONS: dict[str, dict[str, Any]] = {
    "--scorer": {
        "default": "cscd",
        "show_default": True,
        "help": f"The published scorer: {', '.join(SCORERS)}.",
    },
    "--policy": {
        "help": "Treatment of rows whose texts differ in length; each scorer has a default: "
        f"{', '.join(POLICIES)}."
    },
    "--projection": {
        "help": f"Form in which cllm compares texts of other lengths: {', '.join(PROJECTIONS)}."
    },
    "--mode": {"help": f"Alignment of cherrant: {', '.join(MODES)}."},
    "--cilin": {
        "type": _FILE,
        "help": "The thesaurus Cilin, from which ChERRANT takes costs of substitutions.",
    },
    "--confusion": {
        "type": _FILE,
        "help": "A list of confused characters, from which ChERRANT takes costs of substitutions.",
    },
}


def scoring_options(command: Command) -> Command:
    """Add the options that say how answers are scored."""
    for name, settings in reversed(_OPTIONS.items()):
        option = click.option(name, cls=SectionOption, section="Options of scoring", **settings)
        command = option(command)
    return command


def scoring_from(given: Mapping[str, Any]) -> Options:
    """Return the record of a command's options, without the scorer's name."""
    return Options(
        given["policy"],
        given["projection"],
        given["mode"],
        Dictionaries(given["cilin"], given["confusion"]),
    )
