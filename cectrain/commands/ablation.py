"""`cectrain ablation`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import study_options, told
from cectrain.protocols.frame import Plan


@click.command()
@study_options
def ablation(
    plan: Plan,
    seeds: tuple[int, ...],
    benchmarks: tuple[str, ...],
) -> None:
    """The reward's two terms apart: pairwise alone, consensus alone, both, both calibrated.

    OUT holds ablation.json, .md and .html, written anew after each run; the same command goes on.

    Example: cectrain ablation out/data --out out/ablation --seeds 42,137,314
    """
    from cectrain.protocols.ablation import ablation as study

    told(plan, study(seeds, benchmarks))
