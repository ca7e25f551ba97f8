"""The command line of the experiments: `python -m experiments COMMAND …` in a clone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from cecdata.common import command_group
from cecdata.config import load as load_data_recipe
from cectrain.commands.train import DATA, add_recipe_options
from cectrain.config import load
from experiments.pretraining.config import RECIPE, RECIPES
from experiments.pretraining.config import load as load_pretraining
from experiments.training.runs import Experiment

Command = Callable[..., None]
_PATH = click.Path(path_type=Path)
_OUT = click.option("--out", required=True, type=_PATH, help="Folder of the runs and the report.")


def tell(line: str) -> None:
    """Print a line of progress on stderr."""
    click.echo(line, err=True)


@click.group("python -m experiments", context_settings=command_group.CONTEXT)
def cli() -> None:
    """Experiments of CEC-Zero: what the toolkit's claims rest on.

    \b
    python -m experiments evidence out/data --out out/evidence --workers 2
    python -m experiments study ablation out/data --out out/ablation
    python -m experiments figures out/bench/runs --out out/figures
    """


def experiment_options(function: Command) -> Command:
    """Add DATA, --out, --recipe, --set, --model and --workers, passed on as `experiment`.

    Settings that do not load are refused before the command runs.
    """

    @wraps(function)
    def with_experiment(
        data: Path,
        out: Path,
        recipe: str,
        settings: tuple[str, ...],
        policy: str | None,
        workers: int,
        **others: object,
    ) -> None:
        if policy:
            settings = (*settings, f'policy.name="{policy}"')
        load(recipe, settings)
        function(Experiment(data, out, recipe, settings, workers, tell), **others)

    command: Command = with_experiment
    for option in (
        click.option(
            "--workers",
            type=click.IntRange(1),
            default=1,
            help="Number of concurrent runs; they share the cores.",
        ),
        click.option(
            "--model",
            "policy",
            help="Policy that all runs start from: builtin, a folder or a hub name.",
        ),
        add_recipe_options,
        _OUT,
        DATA,
    ):
        command = option(command)
    return command


@cli.command()
@experiment_options
@click.option(
    "--seeds",
    default="42,137,314",
    help="One PPO run and one supervised run for each seed.",
)
@click.option(
    "--sft-rates",
    metavar="A,B,C",
    help="Learning rates tried for the supervised side, as in 4e-4,1e-4; by default the recipe's, "
    "its half and its quarter. A single one is used without a trial.",
)
def evidence(experiment: Experiment, seeds: str, sft_rates: str | None) -> None:
    """Compare PPO with its start and with supervised steps of the same cost.

    For each seed: PPO as the recipe says, and supervised training on the same data for as many CPU
    seconds, at the rate and share of clean sources that are best on a tenth of the training split.
    All of the validation split is held out; differences are paired by sentence, with 95 %
    intervals. OUT gets evidence.json, evidence.md and evidence.html.
    """
    from experiments.training.evidence import evidence as run

    click.echo(run(experiment, parse_seeds(seeds), parse_rates(sft_rates)), nl=False)
    click.echo(f"wrote {experiment.out / 'evidence'}.html, .md and .json", err=True)


@cli.command()
@click.argument("study")
@experiment_options
@click.option("--seeds", metavar="A,B,C", help="Seeds of each variant, instead of the study's.")
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    help="Also score each run on this benchmark, such as lemon/nov; repeatable.",
)
def study(
    experiment: Experiment, study: str, seeds: str | None, benchmarks: tuple[str, ...]
) -> None:
    """Train the variants of STUDY on DATA and compare them in one table.

    STUDY is a study of experiments/training/studies (ablation, encoders, recipes, rewards,
    scaling, thresholds, thresholds-full) or a TOML file with a list of variants. OUT gets
    STUDY.json, STUDY.md and STUDY.html, written again after each run that finishes. Repeat an
    interrupted command to continue.
    """
    from experiments.training.study import load as load_study
    from experiments.training.study import run_study

    chosen = load_study(study, parse_seeds(seeds) if seeds else (), benchmarks)
    run_study(experiment, chosen)
    report = experiment.out / chosen.name
    click.echo(Path(f"{report}.md").read_text("utf-8"), nl=False)
    click.echo(f"wrote {report}.html, .md and .json", err=True)


@cli.command()
@click.argument("corpus", nargs=-1, required=True)
@_OUT
@click.option(
    "--recipe",
    default=RECIPE,
    help=f"Recipe: {', '.join(RECIPES)}, or a path to a TOML file.",
)
@click.option(
    "--start",
    default="",
    show_default=False,
    metavar="POLICY",
    help="Policy to train on from, instead of random weights: a folder of a model or of a run, or"
    " builtin.",
)
@click.option(
    "--decontaminate",
    "benchmarks",
    multiple=True,
    metavar="FILE",
    help="Benchmark file whose sentences are left out; repeatable.",
)
@click.option("--seed", type=int, help="Seed of all random draws; overrides the recipe.")
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
    python -m experiments pretrain clean.parquet --out out/pretrain --decontaminate car.txt
    python -m experiments pretrain clean.parquet --out out/more --recipe cooldown --start builtin
    """
    from experiments.pretraining.run import pretrain as run

    config = load_pretraining(recipe, seed=seed)
    summary = run(
        corpus, out, config, start=start, benchmarks=benchmarks, overwrite=overwrite, tell=tell
    )
    line = f"held-out exact rate {summary['heldout_exact']:.1%}, weights in {out / 'model'}"
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1) if as_json else line)


@cli.command()
@click.argument("run", type=_PATH)
@click.option("--out", required=True, type=_PATH, help="Folder of the shipped policy.")
@click.option("--dataset", required=True, type=_PATH, help="Dataset whose validation is scored.")
@click.option("--benchmark", "benchmarks", multiple=True, metavar="NAME", help="May be repeated.")
@click.option("--data", "bench_data", type=_PATH, help="Folder of the benchmarks.")
@click.option(
    "--before", default="", show_default=False, help="How the run's initial weights were made."
)
@click.option(
    "--note", default="", show_default=False, help="A remark for the card, beside the scores."
)
def ship(
    run: Path,
    out: Path,
    dataset: Path,
    benchmarks: tuple[str, ...],
    bench_data: Path | None,
    before: str,
    note: str,
) -> None:
    """Write the model of the pretraining in RUN as the built-in policy, with its card."""
    from experiments.pretraining.ship import ship as write

    scores = write(
        run, out, dataset, benchmarks=benchmarks, bench_data=bench_data, note=note, before=before
    )
    click.echo(json.dumps(scores, ensure_ascii=False, indent=1))


@cli.command()
@click.option(
    "--errors", "file", required=True, type=_PATH, help="Real errors: source, tab and target."
)
@click.option("--recipe", default="typed", help="Recipe of cecdata.")
@click.option("--seed", type=int, help="Seed of the recipe and of the classifier.")
def realism(file: Path, recipe: str, seed: int | None) -> None:
    """Train a classifier to tell real errors from a recipe's, and print its AUC as JSON.

    `auc` says how well the recipe's errors can be told from real ones in the same targets (0.5:
    they cannot), and `auc_null` how well from other errors of the recipe.
    """
    from cecdata.audit import read_pairs
    from cecdata.common.progress import Progress
    from experiments.realism.classifier import classify

    with Progress():
        result = classify(read_pairs(file), load_data_recipe(recipe, seed=seed))
    click.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=1))


@cli.command()
@click.argument("sources", nargs=-1, type=_PATH)
@click.option("--out", type=_PATH, default=Path("out/figures"))
def figures(sources: tuple[Path, ...], out: Path) -> None:
    """Draw your results as SVG, beside the numbers that the paper prints.

    SOURCES are folders of runs (`cecbench run`) and of studies.
    """
    from experiments.figures import redraw

    for path in redraw(sources, out):
        click.echo(path)


@cli.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    short_help="Compare corpora of errors by the corrector that each one trains.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def corpora(words: tuple[str, ...]) -> None:
    """Compare corpora of errors by the corrector that each one trains."""
    from experiments.corpora.compare import main

    main(words)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the whole numbers that the commas separate. Raises UsageError."""
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError as error:
        raise click.UsageError(
            f"--seeds {text}: must be whole numbers separated by commas, as in 42,137"
        ) from error


def parse_rates(text: str | None) -> tuple[float, ...]:
    """Return the positive numbers that the commas separate, () for None. Raises UsageError."""
    try:
        rates = tuple(float(rate) for rate in text.split(",")) if text else ()
    except ValueError:
        rates = (math.nan,)
    if not all(0 < rate < math.inf for rate in rates) or len({*rates}) < len(rates):
        raise click.UsageError(
            f"--sft-rates {text}: must be distinct positive numbers separated by commas"
        )
    return rates


if __name__ == "__main__":
    command_group.start(cli)
