"""`cectrain evidence`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import experiment_options, parse_rates, parse_seeds
from cectrain.protocols.runner import Experiment


@click.command()
@experiment_options
@click.option(
    "--seeds",
    default="42,137,314",
    show_default=True,
    help="One PPO run and one supervised run for each seed.",
)
@click.option(
    "--sft-rates",
    metavar="A,B,C",
    help="Learning rates tried for the supervised side, as in 4e-4,1e-4; by default the recipe's, "
    "its half and its quarter. A single one is used without a trial.",
)
def evidence(experiment: Experiment, seeds: str, sft_rates: str | None) -> None:
    """Compare PPO with its start and with supervised steps of the same cost.

    For each seed: PPO as the recipe says, and supervised training on the same data for as many CPU
    seconds, at the rate and share of clean sources that are best on a tenth of the training split.
    All of the validation split is held out; differences are paired by sentence, with 95 %
    intervals. OUT gets evidence.json, evidence.md and evidence.html.

    Example: cectrain evidence out/data --out out/evidence --workers 2
    """
    from cectrain.protocols.evidence import evidence as run

    click.echo(run(experiment, parse_seeds(seeds), parse_rates(sft_rates)), nl=False)
    click.echo(f"wrote {experiment.out / 'evidence'}.html, .md and .json", err=True)
