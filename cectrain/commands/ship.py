"""`cectrain ship`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cectrain.commands.options import tell


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="What is shipped.")
@click.option("--dataset", required=True, type=click.Path(path_type=Path),
              help="Shards whose validation split is scored.")  # fmt: skip
@click.option("--benchmark", "benchmarks", multiple=True, help="As for `cecbench run`; repeatable.")
@click.option("--data", "bench_data", type=click.Path(path_type=Path), help="Where they lie.")
@click.option("--note", default="", help="A remark that the card sets beside the scores.")
def ship(
    run: Path,
    out: Path,
    dataset: Path,
    benchmarks: tuple[str, ...],
    bench_data: Path | None,
    note: str,
) -> None:
    """Store the finished pretraining RUN in fp16, score it, and write its model card.

    Example: cectrain ship out/pretrain --out cectrain/weights --dataset out/data
    """
    from cectrain.pretraining.ship import ship as store

    found = store(
        run, out, dataset, benchmarks=benchmarks, bench_data=bench_data, note=note, tell=tell
    )
    click.echo(json.dumps(found, ensure_ascii=False, indent=1))
