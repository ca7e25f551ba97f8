"""`cecbench run`: one system on one benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cecbench.commands.list import DATA
from cecbench.commands.options import (
    LIMIT,
    SectionCommand,
    options_from,
    scoring_from,
    scoring_options,
    system_options,
)
from cecbench.results import RunScore
from cecbench.run import Settings, evaluate
from cecbench.systems.table import check_spec
from cecdata.common.progress import Progress, suggest


@click.command(
    cls=SectionCommand,
    epilog="Example: cecbench run --system predictions:answers.tsv --benchmark lemon/car --json",
)
@click.option("--system", required=True, help="The system, in a form that `cecbench list` shows.")
@click.option(
    "--benchmark", required=True, help="Name of a benchmark, a file, or a folder of shards."
)
@DATA
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the run, see above for the default."
)
@scoring_options
@click.option("--name", default="", help="Name of the system in reports.")
@LIMIT
@click.option("--allow-missing", is_flag=True, help="Score rows without an answer as unchanged.")
@click.option("--overwrite", is_flag=True, help="Replace another run in that folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@system_options
def run(
    system: str,
    benchmark: str,
    data: Path | None,
    out: Path | None,
    scorer: str,
    limit: int,
    name: str,
    *,
    allow_missing: bool,
    overwrite: bool,
    as_json: bool,
    **given: object,
) -> None:
    """Run a system on a benchmark and score it.

    Models and endpoints write to --out, by default out/bench/runs/BENCHMARK/SYSTEM, where the same
    command goes on after an interruption. `copy` and predictions write only if --out is given.
    """
    # without folders of its own, `cecbench report` reads the runs below the default one
    report = "cecbench report" if out is None else f"cecbench report {out.parent}"
    if out is None and check_spec(system)[0].recorded:
        out = default_folder(Path("out/bench"), benchmark, system)
    settings = Settings(
        benchmark=benchmark,
        system=system,
        out=out,
        data=data,
        scorer=scorer,
        scoring=scoring_from(given),
        allow_missing=allow_missing,
        overwrite=overwrite,
        limit=limit,
        name=name,
        options=options_from(given),
    )
    values = evaluated(settings)
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        print_run(values)
        if out is not None:
            suggest(report, f"cecbench compare {out}/score.json OTHER/score.json")


def default_folder(base: Path, benchmark: str, system: str) -> Path:
    """Return the folder of a run, which is named after the benchmark and the system."""
    return base / "runs" / _plain(benchmark) / _plain(system)


def evaluated(settings: Settings) -> RunScore:
    """Evaluate, with a progress bar on stderr if that is a terminal."""
    with Progress() as progress:
        return evaluate(settings, lambda done, of: progress.reached("sentences", done, of))


def print_run(values: RunScore) -> None:
    """Print a score: the headline with its interval, remarks, parts, and the signature."""
    from cecbench.report.overview import headline, lines_of

    click.echo(headline(values))
    for line in lines_of(values):
        click.echo(line)
    identity = values["system_identity"]
    if "matched_by" in identity:
        click.echo(f"predictions matched to the rows by {identity['matched_by']}")
    click.echo(values["signature"])


def _plain(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in name.replace("://", "-"))
    return kept.strip("-.") or "unnamed"
