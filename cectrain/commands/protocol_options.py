"""Options that `study`, `evidence` and `search` share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from cectrain.commands.options import data_argument, recipe_options, tell
from cectrain.config import load
from cectrain.protocols.runner import Experiment

Command = Callable[..., None]


def experiment_options(function: Command) -> Command:
    """Add DATA, --out, --recipe, --set, --policy and --workers, passed on as `experiment`.

    Settings that do not load are refused before the command runs.
    """

    @wraps(function)
    def with_experiment(
        data: Path,
        out: Path,
        recipe: str,
        settings: tuple[str, ...],
        policy: str | None,
        workers: int,
        **others: object,
    ) -> None:
        if policy:
            settings = (*settings, f'policy.name="{policy}"')
        load(recipe, settings)
        function(Experiment(data, out, recipe, settings, workers, tell), **others)

    command: Command = with_experiment
    for option in (
        click.option(
            "--workers",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Number of concurrent runs; they share the cores.",
        ),
        click.option(
            "--policy", help="Policy that all runs start from: builtin, a folder or a hub name."
        ),
        recipe_options,
        click.option(
            "--out",
            required=True,
            type=click.Path(path_type=Path),
            help="Folder of the runs and of the report.",
        ),
        data_argument,
    ):
        command = option(command)
    return command


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the whole numbers that the commas separate. Raises UsageError."""
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError as error:
        raise click.UsageError(
            f"--seeds {text}: must be whole numbers separated by commas, as in 42,137"
        ) from error


def parse_rates(text: str | None) -> tuple[float, ...]:
    """Return the positive numbers that the commas separate, () for None. Raises UsageError."""
    try:
        rates = tuple(float(rate) for rate in text.split(",")) if text else ()
    except ValueError:
        rates = (math.nan,)
    if not all(0 < rate < math.inf for rate in rates) or len({*rates}) < len(rates):
        raise click.UsageError(
            f"--sft-rates {text}: must be distinct positive numbers separated by commas"
        )
    return rates
