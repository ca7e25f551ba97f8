"""`cectrain pretrain`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cectrain.commands.options import tell
from cectrain.pretraining.config import RECIPE, load


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the run.")
@click.option(
    "--recipe", default=RECIPE, show_default=True, help="The shipped recipe, or a TOML file."
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
    benchmarks: tuple[str, ...],
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train the built-in policy from random weights on CORPUS.

    CORPUS has the columns text and origin; the recipe lists the origins that may be used.

    Example: cectrain pretrain clean.parquet --out out/pretrain --decontaminate car.txt
    """
    from cectrain.pretraining.run import pretrain as run

    config = load(recipe, seed=seed)
    summary = run(corpus, out, config, benchmarks=benchmarks, overwrite=overwrite, tell=tell)
    line = f"held-out exact rate {summary['heldout_exact']:.1%}, weights in {out / 'model'}"
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1) if as_json else line)
