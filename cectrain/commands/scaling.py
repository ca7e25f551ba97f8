"""`cectrain scaling`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import study_options, told
from cectrain.protocols.frame import Plan


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
    plan: Plan,
    seeds: tuple[int, ...],
    benchmarks: tuple[str, ...],
    backbones: tuple[str, ...],
    sft_steps: int,
) -> None:
    """Backbones, each trained supervised and by reward, data and settings the same.

    Example: cectrain scaling out/data --out out/scaling --recipe configs/qwen3-0.6b.toml
    """
    from functools import partial

    from cectrain.protocols import scaling as protocol

    study = protocol.scaling(backbones or protocol.BACKBONES, sft_steps, seeds, benchmarks)
    told(plan, study, partial(protocol.size_figure, benchmarks=benchmarks))
