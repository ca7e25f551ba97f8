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
    """Supervised training on DATA alone, no PPO: a start for it, or what it is compared with.

    Example: cectrain sft out/data --out out/sft --sft-steps 2000
    """
    from cectrain.run.progress import displayed
    from cectrain.train import train as run

    config = configured(
        recipe, settings, policy__name=policy, seed=seed, sft__steps=sft_steps, ppo__updates=0
    )
    if not config.sft.steps:
        raise click.UsageError("--sft-steps says how many steps; the recipe has none")
    with displayed({"sft": config.sft.steps}) as to:
        found = run(data, out, config, overwrite=overwrite, log=to.log, on_step=to.on_step)
    exact = found["heldout_exact_after_sft"]
    line = f"held-out exact rate {exact:.1%}" if isinstance(exact, float) else "nothing held out"
    click.echo(json.dumps(found, ensure_ascii=False, indent=1) if as_json else line)
