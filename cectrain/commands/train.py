"""`cectrain train`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cecdata.common.codec import Json
from cectrain.commands.options import configured, run_options


@click.command()
@run_options
@click.option("--updates", type=int, help="PPO batches.  [the recipe's]")
@click.option(
    "--constants",
    type=click.Choice(["auto", "given", "calibrated"]),
    help="Of the reward.  [the recipe's]",
)
@click.option("--cache", help="Folder of `cecdata embed` with the references' embeddings.")
def train(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    seed: int | None,
    sft_steps: int | None,
    overwrite: bool,
    as_json: bool,
    updates: int | None,
    constants: str | None,
    cache: str | None,
) -> None:  # fmt: skip
    """Train a corrector on DATA: warm start, PPO, held-out scores before and after.

    The same command goes on where a killed one stopped. Several GPUs: `accelerate launch
    --config_file configs/accelerate/ddp.yaml -m cectrain train …`.

    Example: cectrain train out/data --out out/train
    """
    from cectrain.run.progress import curve, displayed
    from cectrain.store import metrics_log
    from cectrain.train import train as run

    config = configured(
        recipe, settings, policy__name=policy, seed=seed, sft__steps=sft_steps,
        ppo__updates=updates, constants=constants, data__cache=cache,
    )  # fmt: skip
    with displayed({"sft": config.sft.steps, "ppo": config.ppo.updates}) as to:
        found = run(data, out, config, overwrite=overwrite, log=to.log, on_step=to.on_step)
    if found and as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=1))
    elif found:
        heldout = metrics_log.lines(out / metrics_log.FILE, "heldout")
        points = [(int(x["step"]), x["heldout_exact"]) for x in heldout if "heldout_exact" in x]
        click.echo("\n".join([*curve(points, "held-out exact rate after so many batches"), ""]))
        click.echo(text(found))


def text(found: dict[str, Json]) -> str:
    """Before and after, for people."""
    lines = [f"{'held out':<18}{'after sft':>12}{'after ppo':>12}"]
    before, after = found["heldout_after_sft"], found["heldout_after_ppo"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    for name in after:
        cells = "".join(f"{_shown(values.get(name)):>12}" for values in (before, after))
        lines.append(f"{name.removeprefix('heldout_'):<18}{cells}")
    if not found["ppo_batches"]:
        return "\n".join([*lines, f"no PPO was run ({found['heldout_rows']} sentences)"])
    change = _change(found["heldout_exact_after_sft"], found["heldout_exact_after_ppo"])
    return "\n".join([*lines, f"{change} ({found['heldout_rows']} sentences, one seed)"])


def _change(before: Json, after: Json) -> str:
    if not isinstance(before, float) or not isinstance(after, float):
        return "the exact rate is not known"
    if after > before:
        return f"PPO raised the held-out exact rate by {after - before:.1%}"
    return f"PPO did not raise the held-out exact rate ({before:.1%} → {after:.1%})"


def _shown(value: Json) -> str:
    return f"{value:.1%}" if isinstance(value, float) else "–"
