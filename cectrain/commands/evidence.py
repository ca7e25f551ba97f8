"""`cectrain evidence`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import protocol_options, rates_of, seeds_of
from cectrain.protocols.frame import Plan


@click.command()
@protocol_options
@click.option(
    "--seeds",
    default="42,137,314",
    show_default=True,
    help="One PPO and one supervised run for each.",
)
@click.option(
    "--sft-rates",
    metavar="RATES",
    help="Rates tried for the supervised side, as in 4e-4,1e-4; default: the recipe's, its half "
    "and its quarter. A single one is taken as it is.",
)
def evidence(plan: Plan, seeds: str, sft_rates: str | None) -> None:
    """Is PPO above its start, and above supervised steps of the same cost?

    For each seed PPO from the start policy, and further supervised training on the same data for
    as many CPU seconds, at the rate that is best on a tenth of the training split. All of the
    validation split is held out; differences are paired by sentence, with 95 % intervals. Left in
    OUT: evidence.json, evidence.md, evidence.html.

    Example: cectrain evidence out/data --out out/evidence --workers 2
    """
    from cectrain.protocols.evidence import evidence as run

    for line in run(plan, seeds_of(seeds), rates_of(sft_rates)):
        click.echo(line)
    click.echo(f"{plan.out / 'evidence.html'}, evidence.md and evidence.json written", err=True)
