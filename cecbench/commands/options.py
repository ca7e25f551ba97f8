"""Options that several commands share, which the help shows in sections.

Each kind of system declares its own in its module. The help shows them by the kinds that take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cecbench.scorers import OPTIONS, SCORERS
from cecdata.common.command_group import SectionOption

Command = TypeVar("Command", bound=Callable[..., object])


def add_system_options(command: Command) -> Command:
    """Add the options of all kinds of systems."""
    for option in reversed(list(_make_options())):
        command = option(command)
    return command


def _make_options() -> Iterator[Callable[[Command], Command]]:
    """Yield the options of all kinds of systems, each in the section of those that take it."""
    from cecbench.systems.table import list_kinds  # late: `cecbench score` needs no system

    field_of = {field.name: field for kind in list_kinds() for field in fields(kind.options)}
    sections: dict[str, list[str]] = {}  # names of options by the kinds that take them
    for name in field_of:
        takers = ", ".join(kind.name for kind in list_kinds() if name in kind.takes)
        sections.setdefault(takers, []).append(name)
    for title, names in sections.items():
        for name in names:
            field = field_of[name]
            settings = dict(field.metadata)
            if field.default is not MISSING:
                flag = isinstance(field.default, bool)
                settings |= {"default": field.default, "is_flag": flag, "show_default": not flag}
            yield click.option(
                f"--{name.replace('_', '-')}",
                cls=SectionOption,
                section=f"Options of {title}",
                **settings,
            )


def select_stated_options(values: Mapping[str, object]) -> dict[str, object]:
    """Return the options of systems that the running command was called with, without defaults."""
    from cecbench.systems.table import list_kinds

    context = click.get_current_context()
    names = {name for kind in list_kinds() for name in kind.takes}
    return {
        name: value
        for name, value in values.items()
        if name in names and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def add_scoring_options(command: Command) -> Command:
    """Add the options that say how answers are scored."""
    scorers = f"The published scorer: {', '.join(SCORERS)}."
    settings: dict[str, dict[str, Any]] = {"scorer": {"default": "cscd", "help": scorers}}
    settings |= {name: {"default": None, **field.metadata} for name, field in OPTIONS.items()}
    for name, keywords in reversed(settings.items()):
        flag = f"--{name.replace('_', '-')}"
        option = click.option(flag, cls=SectionOption, section="Options of scoring", **keywords)
        command = option(command)
    return command
