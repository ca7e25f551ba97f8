"""`cectrain search`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from cectrain.commands.protocol_options import experiment_options, parse_seeds
from cectrain.protocols.runner import Experiment


@click.command()
@experiment_options
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Combinations to try, drawn at random without repetition.",
)
@click.option(
    "--updates",
    type=click.IntRange(1),
    default=25_000,
    show_default=True,
    help="PPO batches of a trial.",
)
@click.option(
    "--share", default=0.02, show_default=True, help="Fraction of the training pairs of a trial."
)
@click.option(
    "--over",
    "space",
    multiple=True,
    metavar="KEY=A,B,C",
    help="Values to try for one setting; may be repeated. Without it the paper's grid is searched.",
)
@click.option(
    "--select",
    default="tuning",
    show_default=True,
    help="What selects the best: tuning (a tenth of the training split), validation, or a "
    "benchmark such as lemon/nov.",
)
@click.option(
    "--best",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of settings that are retrained on all pairs.",
)
@click.option(
    "--seeds", default="42,137,314", show_default=True, help="Seeds of the retrained runs."
)
def search(
    experiment: Experiment,
    trials: int,
    updates: int,
    share: float,
    space: tuple[str, ...],
    select: str,
    best: int,
    seeds: str,
) -> None:
    """Search hyper-parameters with short runs, then retrain the best over several seeds.

    OUT gets search.json, search.md and search.html, and OUT/best the table of the retrained runs.
    Repeat an interrupted command to continue; --workers runs trials side by side.

    Example: cectrain search out/data --out out/search --updates 40 --trials 20 --workers 2
    """
    from cectrain.data.shards import TRAIN, open_shards
    from cectrain.protocols import search as protocol

    over = parse_space(space) if space else protocol.GRID
    plan = protocol.Search(over, trials, updates, share, select, best, parse_seeds(seeds))
    pairs = open_shards(experiment.data).rows(TRAIN)
    click.echo(protocol.search(experiment, plan, pairs), nl=False)


def parse_space(texts: tuple[str, ...]) -> Mapping[str, tuple[float | int, ...]]:
    """Return the values of each setting; whole numbers stay whole. Raises UsageError."""
    space: dict[str, tuple[float | int, ...]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            space[name] = tuple(int(v) if v.isdigit() else float(v) for v in values.split(","))
        except ValueError:
            raise click.UsageError(
                f"--over {text}: must be a setting and numbers, as in ppo.groups=16,24"
            ) from None
    return space
