"""`cecbench score`: the numbers of a published scorer for a file of predictions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cecbench.commands.scoring_options import scoring_from, scoring_options
from cecbench.metrics.table import Report
from cecbench.scorers import score_file


@click.command(
    epilog="Example: cecbench score answers.tsv --scorer cscd --policy revert --json",
)
@click.argument("file", type=click.Path(path_type=Path))
@scoring_options
@click.option("--benchmark", help="The set's name, for the signature.")
@click.option(
    "--bootstrap", default=0, help="Draws for the headline's interval (1000 or more); 0: none."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def score(
    file: Path,
    scorer: str,
    benchmark: str | None,
    bootstrap: int,
    *,
    as_json: bool,
    **given: object,
) -> None:
    """Score FILE: id, source, target, prediction; tabs between, no header, UTF-8."""
    options = scoring_from(given)
    values = score_file(
        file, scorer, options.policy, options.projection, options.mode,
        dictionaries=options.dictionaries, benchmark=benchmark, bootstrap=bootstrap,
    )  # fmt: skip
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        _print(values)


def _print(values: Report) -> None:
    hidden = ("signature", "counts_tp_pred_gold.", "interval")
    shown = {key: value for key, value in values.items() if not key.startswith(hidden)}
    width = max(map(len, shown))
    for key, value in shown.items():
        click.echo(f"{key:<{width}}  {'-' if value is None else value}")
    interval = values.get("interval")
    if isinstance(interval, dict):
        low, high = (f"{100 * interval[end]:.3f}" for end in ("low", "high"))
        click.echo(f"{interval['measure']}, {100 * interval['level']:g} %: {low} to {high} %")
    click.echo(values["signature"])
