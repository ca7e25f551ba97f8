"""`cectrain scaling`."""

from __future__ import annotations

from pathlib import Path

import click

from cectrain.commands.protocol_options import plan_of, seeds_of, study_options, told


@click.command()
@study_options
@click.option(
    "--backbone",
    "backbones",
    multiple=True,
    metavar="NAME",
    help="A hub name or a folder; may be repeated.  [Qwen3 0.6B to 32B]",
)
@click.option("--sft-steps", default=2000, show_default=True, help="Of the supervised rows.")
def scaling(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    workers: int,
    seeds: str,
    benchmarks: tuple[str, ...],
    backbones: tuple[str, ...],
    sft_steps: int,
) -> None:
    """Backbones, each trained supervised and by reward, data and settings the same.

    Example: cectrain scaling out/data --out out/scaling --recipe configs/qwen3-0.6b.toml
    """
    from cectrain.protocols.scaling import BACKBONES
    from cectrain.protocols.scaling import scaling as study

    plan = plan_of(data, out, recipe, settings, policy, workers)
    told(plan, study(backbones or BACKBONES, sft_steps, seeds_of(seeds), benchmarks))
