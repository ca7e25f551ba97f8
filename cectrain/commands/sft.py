"""`cectrain sft`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cectrain.commands.options import configured, run_options


@click.command()
@run_options
def sft(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    seed: int | None,
    sft_steps: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train on the pairs of DATA by supervised steps only, without PPO.

    The result is a start for PPO, or the baseline that PPO is compared with.

    Example: cectrain sft out/data --out out/sft --sft-steps 2000
    """
    from cectrain.run.progress import displayed
    from cectrain.train import train as run

    config = configured(
        recipe, settings, policy__name=policy, seed=seed, sft__steps=sft_steps, ppo__updates=0
    )
    if not config.sft.steps:
        raise click.UsageError("the recipe has no supervised steps: set --sft-steps")
    with displayed({"sft": config.sft.steps}) as to:
        summary = run(data, out, config, overwrite=overwrite, log=to.log, on_step=to.on_step)
    exact = summary["heldout_exact_after_sft"]
    known = isinstance(exact, float)
    line = f"held-out exact rate {exact:.1%}" if known else "the held-out exact rate is unknown"
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1) if as_json else line)
