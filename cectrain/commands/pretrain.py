"""`cectrain pretrain`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cectrain.commands.options import tell
from cectrain.pretraining.config import RECIPE, load


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Run's folder.")
@click.option(
    "--recipe", default=RECIPE, show_default=True, help="The shipped one, or a TOML file."
)
@click.option("--decontaminate", "benchmarks", multiple=True, metavar="FILE",
              help="Leave out what this benchmark file has too; may be repeated.")  # fmt: skip
@click.option("--seed", type=int, help="Every draw depends on it.  [the recipe's]")
@click.option("--overwrite", is_flag=True, help="Replace what an earlier run left in OUT.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout.")
def pretrain(
    corpus: tuple[str, ...],
    out: Path,
    recipe: str,
    benchmarks: tuple[str, ...],
    seed: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train the built-in policy from nothing on CORPUS, whose origins the recipe lists.

    Example: cectrain pretrain clean.parquet --out out/pretrain --decontaminate car.txt
    """
    from cectrain.pretraining.run import pretrain as run

    config = load(recipe, seed=seed)
    found = run(corpus, out, config, benchmarks=benchmarks, overwrite=overwrite, tell=tell)
    line = f"held-out exact rate {found['heldout_exact']:.1%}, weights in {out / 'model'}"
    click.echo(json.dumps(found, ensure_ascii=False, indent=1) if as_json else line)
