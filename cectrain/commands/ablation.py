"""`cectrain ablation`."""

from __future__ import annotations

from pathlib import Path

import click

from cectrain.commands.protocol_options import plan_of, seeds_of, study_options, told


@click.command()
@study_options
def ablation(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    workers: int,
    seeds: str,
    benchmarks: tuple[str, ...],
) -> None:
    """The reward's two terms apart: pairwise alone, consensus alone, both, both calibrated.

    OUT holds ablation.json, .md and .html, written anew after each run; the same command goes on.

    Example: cectrain ablation out/data --out out/ablation --seeds 42,137,314
    """
    from cectrain.protocols.ablation import ablation as study

    plan = plan_of(data, out, recipe, settings, policy, workers)
    told(plan, study(seeds_of(seeds), benchmarks))
