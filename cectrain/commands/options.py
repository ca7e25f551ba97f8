"""Options that several commands share, and how they become a configuration."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from cectrain.config import RECIPES, Config, load

F = TypeVar("F", bound=Callable[..., object])
DEFAULT = "small"  # the recipe of every command that takes one: what is judged is what is trained


def run_options(function: F) -> F:
    """DATA, --out, --recipe, --set, --policy, --seed, --overwrite, --json."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def configured(recipe: str, settings: tuple[str, ...], **flags: object) -> Config:
    """A recipe with `--set` and then the named flags on top; a flag of None changes nothing."""
    named = [f"{key.replace('__', '.')}={_toml(v)}" for key, v in flags.items() if v is not None]
    return load(recipe, [*settings, *named])


def tell(line: str) -> None:
    """A line of progress on stderr."""
    click.echo(line, err=True)
    sys.stderr.flush()


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, (str, Path)) else str(value)


_OPTIONS: list[Callable[[F], F]] = [
    click.argument("data", type=click.Path(path_type=Path)),
    click.option("--out", required=True, type=click.Path(path_type=Path), help="Run's folder."),
    click.option("--recipe", default=DEFAULT, show_default=True,
                 help=f"{', '.join(RECIPES)}, or a TOML file."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
                 help="One setting, as in ppo.groups=16; may be repeated."),
    click.option("--policy", help="builtin, a folder or a hub name.  [the recipe's]"),
    click.option("--seed", type=int, help="Every draw depends on it.  [42]"),
    click.option("--sft-steps", type=int, help="Supervised steps.  [the recipe's]"),
    click.option("--overwrite", is_flag=True, help="Replace what an earlier run left in OUT."),
    click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout."),
]  # fmt: skip
