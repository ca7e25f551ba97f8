"""`cectrain search`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from cectrain.commands.protocol_options import protocol_options, seeds_of
from cectrain.protocols.frame import Plan


@click.command()
@protocol_options
@click.option("--trials", type=click.IntRange(1), default=30, show_default=True)
@click.option(
    "--updates",
    type=click.IntRange(1),
    default=25_000,
    show_default=True,
    help="PPO batches of a trial.",
)
@click.option("--share", default=0.02, show_default=True, help="Of the training pairs, a trial.")
@click.option(
    "--sampler",
    type=click.Choice(["random", "grid"]),
    default="random",
    show_default=True,
    help="A random subset of the grid, or all of it in drawn order.",
)
@click.option(
    "--over",
    "space",
    multiple=True,
    metavar="KEY=A,B,C",
    help="Values of one setting; may be repeated.  [the paper's grid]",
)
@click.option(
    "--select",
    default="tuning",
    show_default=True,
    help="What chooses: tuning (a tenth of the training split), validation, or a "
    "benchmark as in lemon/nov.",
)
@click.option(
    "--best",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How many are retrained on everything.",
)
@click.option("--seeds", default="42,137,314", show_default=True, help="Of the retrained ones.")
def search(
    plan: Plan,
    trials: int,
    updates: int,
    share: float,
    sampler: str,
    space: tuple[str, ...],
    select: str,
    best: int,
    seeds: str,
) -> None:
    """Hyper-parameters: short runs on little data, the best retrained over seeds.

    Trials lie in OUT/search.db (Optuna, SQLite). The same command goes on; --workers runs trials
    side by side.

    Example: cectrain search out/data --out out/search --updates 40 --trials 20 --workers 2
    """
    from cectrain.data.shards import TRAIN, open_shards
    from cectrain.protocols import search as protocol
    from cectrain.protocols.grid import Search

    over = _space(space) if space else protocol.GRID
    told = Search(over, trials, updates, share, sampler, select, best, seeds_of(seeds))
    for line in protocol.search(plan, told, open_shards(plan.data).rows(TRAIN)):
        click.echo(line)


def _space(texts: tuple[str, ...]) -> Mapping[str, tuple[float | int, ...]]:
    """Settings and their values, whole numbers kept whole."""
    found: dict[str, tuple[float | int, ...]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            found[name] = tuple(int(v) if v.isdigit() else float(v) for v in values.split(","))
        except ValueError:
            raise click.UsageError(
                f"--over {text}: a setting and numbers are wanted, as in ppo.groups=16,24"
            ) from None
    return found
