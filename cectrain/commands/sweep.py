"""`cectrain sweep`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import study_options, told
from cectrain.protocols.frame import Plan


@click.command()
@study_options
@click.option(
    "--of",
    "kind",
    type=click.Choice(["thresholds", "prior"]),
    default="thresholds",
    show_default=True,
    help="τ × β, or the prior of homophones from 0.10 to 0.40.",
)
@click.option("--full", is_flag=True, help="All of τ × β, not the six cells that the paper prints.")
def sweep(
    plan: Plan,
    seeds: tuple[int, ...],
    benchmarks: tuple[str, ...],
    kind: str,
    full: bool,
) -> None:
    """Thresholds τ × β of the reward, or the prior of homophones in the training pairs.

    For the prior the sources are corrupted anew each epoch; what is held out stays as built.

    Example: cectrain sweep out/data --out out/sweep --of prior --seeds 42,137,314
    """
    from cectrain.protocols import sweep as protocol

    if kind == "prior":
        study = protocol.priors(seeds, benchmarks)
        told(plan, study, protocol.prior_figure)
    else:
        told(plan, protocol.thresholds(seeds, benchmarks, full=full))
