"""`cectrain study`."""

from __future__ import annotations

import click

from cectrain.commands.protocol_options import experiment_options, parse_seeds
from cectrain.protocols.runner import Experiment


@click.command()
@click.argument("study")
@experiment_options
@click.option("--seeds", metavar="A,B,C", help="Seeds of each variant, instead of the study's.")
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    help="Also score each run on this benchmark, such as lemon/nov; may be repeated.",
)
def study(
    experiment: Experiment, study: str, seeds: str | None, benchmarks: tuple[str, ...]
) -> None:
    """Train the variants of STUDY on DATA and compare them in one table.

    STUDY is the name of a study that comes with the package (ablation, encoders, prior, recipes,
    rewards, scaling, thresholds, thresholds-full) or a TOML file with a list of variants;
    docs/training.md explains the keys. OUT gets STUDY.json, STUDY.md and STUDY.html, written again
    after each run that finishes. Repeat an interrupted command to continue.

    Example: cectrain study ablation out/data --out out/ablation --seeds 42,137,314
    """
    from cectrain.protocols.study import load, run_study

    chosen = load(study, parse_seeds(seeds) if seeds else (), benchmarks)
    run_study(experiment, chosen)
    report = experiment.out / chosen.name
    click.echo(report.with_suffix(".md").read_text("utf-8"), nl=False)
    click.echo(f"wrote {report}.html, .md and .json", err=True)
