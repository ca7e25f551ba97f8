"""Options of the command line that describe a system; `run`, `suite` and `speed` share them.

Each kind of system declares its own in its module. The help shows them by the kinds that take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import TypeVar

import click
from click.core import ParameterSource

from cecbench.commands.sections import SectionOption
from cecbench.systems.options import FROM_0
from cecbench.systems.table import kinds

Command = TypeVar("Command", bound=Callable[..., object])

LIMIT = click.option(
    "--limit",
    type=FROM_0,
    default=0,
    show_default=True,
    help="Number of rows in the sample that is scored, always the same ones; 0 scores all.",
)


def system_options(command: Command) -> Command:
    """Add the options of all kinds of systems."""
    for option in reversed(list(_options())):
        command = option(command)
    return command


def _options() -> Iterator[Callable[[Command], Command]]:
    known = {field.name: field for kind in kinds() for field in fields(kind.options)}
    takers = {
        name: ", ".join(kind.name for kind in kinds() if name in kind.takes) for name in known
    }
    sections = list(takers.values())
    for name, field in sorted(known.items(), key=lambda item: sections.index(takers[item[0]])):
        settings = dict(field.metadata)
        if field.default is not MISSING:
            flag = isinstance(field.default, bool)
            settings |= {"default": field.default, "is_flag": flag, "show_default": not flag}
        yield click.option(
            f"--{name.replace('_', '-')}",
            cls=SectionOption,
            section=f"Options of {takers[name]}",
            **settings,
        )


def options_from(given: Mapping[str, object]) -> dict[str, object]:
    """Return the options of systems that the running command was called with, without defaults."""
    context = click.get_current_context()
    known = {name for kind in kinds() for name in kind.takes}
    return {
        name: value
        for name, value in given.items()
        if name in known and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
