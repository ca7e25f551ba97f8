"""`cectrain evidence`."""

from __future__ import annotations

from pathlib import Path

import click

from cectrain.commands.protocol_options import plan_of, protocol_options, seeds_of


@click.command()
@protocol_options
@click.option(
    "--seeds",
    default="42,137,314",
    show_default=True,
    help="One PPO and one supervised run for each.",
)
def evidence(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    workers: int,
    seeds: str,
) -> None:
    """Is PPO above its start, and above supervised steps of the same cost?

    For each seed PPO from the start policy, and further supervised training on the same data for
    as many CPU seconds. All of the validation split is held out; differences are paired by
    sentence, with 95 % intervals. Left in OUT: evidence.json, evidence.md, evidence.html.

    Example: cectrain evidence out/data --out out/evidence --workers 2
    """
    from cectrain.protocols.evidence import evidence as run

    plan = plan_of(data, out, recipe, settings, policy, workers)
    for line in run(plan, seeds_of(seeds)):
        click.echo(line)
    click.echo(f"{out / 'evidence.html'}, evidence.md and evidence.json written", err=True)
