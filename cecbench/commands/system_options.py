"""Options of the command line that describe a system; `run`, `suite` and `speed` share them.

Each kind of system declares its own in its module. The help shows them by the kinds that take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import TypeVar

import click
from click.core import ParameterSource

from cecbench.systems.options import FROM_0
from cecbench.systems.table import KINDS

Command = TypeVar("Command", bound=Callable[..., object])

LIMIT = click.option(
    "--limit",
    type=FROM_0,
    default=0,
    show_default=True,
    help="Score a sample of so many rows, always the same ones; 0 stands for all.",
)


class SystemCommand(click.Command):
    """A command whose help shows the options of systems apart from its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section of the command's own options, and one for each set of kinds."""
        takers = _takers()
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            kinds = takers.get(param.name or "")
            title = f"Options of {', '.join(kinds)}" if kinds else "Options"
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def system_options(command: Command) -> Command:
    """Add the options of all kinds of systems."""
    for option in reversed(list(_options())):
        command = option(command)
    return command


def _options() -> Iterator[Callable[[Command], Command]]:
    known = {field.name: field for kind in KINDS for field in fields(kind.options)}
    takers = _takers()
    for name in sorted(known, key=lambda name: list(takers.values()).index(takers[name])):
        field = known[name]
        settings = dict(field.metadata)
        if field.default is not MISSING:
            settings |= {"default": field.default, "is_flag": isinstance(field.default, bool)}
            settings["show_default"] = not isinstance(field.default, bool)
        yield click.option(f"--{name.replace('_', '-')}", **settings)


def _takers() -> dict[str, tuple[str, ...]]:
    """Return option → the names of the kinds that take it."""
    names = {name: None for kind in KINDS for name in sorted(kind.takes)}
    return {name: tuple(kind.name for kind in KINDS if name in kind.takes) for name in names}


def options_from(given: Mapping[str, object]) -> dict[str, object]:
    """Return the options of systems that were given, by name; those left at their defaults are not.

    Called inside a command.
    """
    context = click.get_current_context()
    known = {name for kind in KINDS for name in kind.takes}
    return {
        name: value
        for name, value in given.items()
        if name in known and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
