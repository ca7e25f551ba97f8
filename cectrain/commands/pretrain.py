"""`cectrain pretrain`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cectrain.commands.options import tell
from cectrain.pretraining.config import RECIPE, RECIPES, load


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the run.")
@click.option(
    "--recipe",
    default=RECIPE,
    show_default=True,
    help=f"Recipe: {', '.join(RECIPES)}, or a path to a TOML file.",
)
@click.option(
    "--start",
    default="",
    metavar="POLICY",
    help="Policy to train on from, instead of random weights: a folder of a model or of a run, or"
    " builtin.",
)
@click.option(
    "--decontaminate",
    "benchmarks",
    multiple=True,
    metavar="FILE",
    help="Benchmark file whose sentences are left out; may be repeated.",
)
@click.option("--seed", type=int, help="Seed of all random draws, instead of the recipe's.")
@click.option("--overwrite", is_flag=True, help="Delete an earlier run in --out first.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def pretrain(
    corpus: tuple[str, ...],
    out: Path,
    recipe: str,
    start: str,
    benchmarks: tuple[str, ...],
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train the built-in policy on CORPUS, from random weights or from a policy.

    CORPUS has the columns text and origin; the recipe lists the origins that may be used.

    \b
    cectrain pretrain clean.parquet --out out/pretrain --decontaminate car.txt
    cectrain pretrain clean.parquet --out out/more --recipe cooldown --start builtin
    """
    from cectrain.pretraining.run import pretrain as run

    config = load(recipe, seed=seed)
    summary = run(
        corpus, out, config, start=start, benchmarks=benchmarks, overwrite=overwrite, tell=tell
    )
    line = f"held-out exact rate {summary['heldout_exact']:.1%}, weights in {out / 'model'}"
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1) if as_json else line)
