"""Options that the protocols share, and the plan that becomes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cectrain.commands.options import DEFAULT, tell
from cectrain.config import RECIPES
from cectrain.protocols.frame import Plan

if TYPE_CHECKING:
    from cectrain.protocols.study import Figure, Study

Command = Callable[..., None]
Option = Callable[[Command], Command]


def protocol_options(function: Command) -> Command:
    """DATA, --out, --recipe, --set, --policy, --workers: the command gets them as `plan`."""

    @wraps(function)
    def with_plan(
        data: Path,
        out: Path,
        recipe: str,
        settings: tuple[str, ...],
        policy: str | None,
        workers: int,
        **more: object,
    ) -> None:
        function(plan_of(data, out, recipe, settings, policy, workers), **more)

    return _with(_OPTIONS, with_plan)


def study_options(function: Command) -> Command:
    """The same with --seeds, which the command gets as whole numbers, and --benchmark."""

    @wraps(function)
    def with_seeds(plan: Plan, seeds: str, **more: object) -> None:
        function(plan, seeds=seeds_of(seeds), **more)

    return protocol_options(_with(_STUDY, with_seeds))


def seeds_of(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between. Raises UsageError."""
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--seeds {text}: whole numbers with commas are wanted") from error


def rates_of(text: str | None) -> tuple[float, ...]:
    """Positive numbers with commas between, none twice; () where nothing is given."""
    try:
        rates = tuple(float(rate) for rate in text.split(",")) if text else ()
    except ValueError:
        rates = (math.nan,)
    if not all(0 < rate < math.inf for rate in rates) or len({*rates}) < len(rates):
        raise click.UsageError(f"--sft-rates {text}: positive numbers with commas are wanted")
    return rates


def told(plan: Plan, study: Study, figure: Figure | None = None) -> None:
    """Run a study and print its table."""
    from cectrain.protocols.study import run_study

    run_study(plan, study, figure)
    click.echo((plan.out / f"{study.name}.md").read_text("utf-8"), nl=False)
    click.echo(f"{plan.out / study.name}.html, .md and .json written", err=True)


def plan_of(
    data: Path, out: Path, recipe: str, settings: Sequence[str], policy: str | None, workers: int
) -> Plan:
    """What the protocol starts from; a wrong setting is refused before anything runs."""
    from cectrain.config import load

    named = [*settings, *([f'policy.name="{policy}"'] if policy else [])]
    load(recipe, named)
    return Plan(data, out, recipe, tuple(named), workers, tell)


def _with(options: Sequence[Option], function: Command) -> Command:
    for option in reversed(options):
        function = option(function)
    return function


_OPTIONS: list[Option] = [
    click.argument("data", type=click.Path(path_type=Path)),
    click.option("--out", required=True, type=click.Path(path_type=Path),
                 help="Folder of the runs and of the report."),
    click.option("--recipe", default=DEFAULT, show_default=True,
                 help=f"Under all runs: {', '.join(RECIPES)}, or a TOML file."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
                 help="One setting of all runs, as in ppo.updates=50; may be repeated."),
    click.option("--policy", help="Start of all runs: builtin, a folder or a hub name."),
    click.option("--workers", type=click.IntRange(1), default=1, show_default=True,
                 help="Runs at once; they share the cores."),
]  # fmt: skip
_STUDY: list[Option] = [
    click.option("--seeds", default="42", show_default=True,
                 help="One run of each line for each seed, as in 42,137,314."),
    click.option("--benchmark", "benchmarks", multiple=True, metavar="NAME",
                 help="Score each run on this one too, as in lemon/nov; may be repeated."),
]  # fmt: skip
