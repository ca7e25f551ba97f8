"""Options that several commands share, and how they become a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from cectrain.config import RECIPES, Config, load

F = TypeVar("F", bound=Callable[..., object])
DEFAULT = "warm-consensus"  # of every command with --recipe, so that all speak of the same one


def data_argument(function: F) -> F:
    """Add DATA, the folder of a dataset that `cecdata build` wrote."""
    return click.argument("data", type=click.Path(path_type=Path))(function)


def recipe_options(function: F) -> F:
    """Add --recipe and --set."""
    recipe = click.option(
        "--recipe",
        default=DEFAULT,
        help=f"Settings to start from: {', '.join(RECIPES)}, or a TOML file.",
    )
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override one setting of the recipe, as in ppo.groups=16; repeatable.",
    )
    return recipe(settings(function))


def run_options(function: F) -> F:
    """Add DATA, --out, --recipe, --set, --model, --seed, --sft-steps, --overwrite, --json."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--overwrite", is_flag=True, help="Delete an earlier run in --out first."),
        click.option("--sft-steps", type=int, help="Supervised steps, instead of the recipe's."),
        click.option("--seed", type=int, help="Seed of all random draws, instead of the recipe's."),
        click.option(
            "--model",
            help="Policy to start from, instead of the recipe's: builtin, a folder, or a name on "
            "the hub.",
        ),
        recipe_options,
        click.option(
            "--out",
            required=True,
            type=click.Path(path_type=Path),
            help="Folder of the run; the same command resumes there.",
        ),
        data_argument,
    ):
        function = option(function)
    return function


def configured(recipe: str, settings: tuple[str, ...], **flags: object) -> Config:
    """Return a recipe with `settings` and then flags on top; a flag of None changes nothing.

    The flag `sft__steps` overrides the setting `sft.steps`.
    """
    named = [f"{key.replace('__', '.')}={_toml(v)}" for key, v in flags.items() if v is not None]
    return load(recipe, [*settings, *named])


def wait_without_spinning() -> None:
    """Let threads of OpenMP sleep while they wait for each other; call it before torch is imported.

    By default they spin. On a machine with other busy processes a spinning thread keeps the core
    that the thread that it waits for needs: a step then takes more than twice as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, (str, Path)) else str(value)
