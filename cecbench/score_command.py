"""`cecbench score`: the numbers of a published scorer for a file of predictions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cecbench.cherrant.costs import Dictionaries
from cecbench.metrics.cherrant import MODES
from cecbench.metrics.cllm import PROJECTIONS
from cecbench.metrics.policies import POLICIES
from cecbench.metrics.table import Report
from cecbench.scorers import SCORERS, score_file
from cecdata.errors import CecError, UsageError


@click.command(
    epilog="Example: cecbench score answers.tsv --scorer cscd --policy revert --json",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--scorer", default="cscd", show_default=True, help=f"One of {', '.join(SCORERS)}.")
@click.option("--policy", help=f"Rows of other lengths: {', '.join(POLICIES)}.")
@click.option("--projection", help=f"For cllm: {', '.join(PROJECTIONS)}.")
@click.option("--mode", help=f"For cherrant: {', '.join(MODES)}.")
@click.option(
    "--cilin", type=click.Path(path_type=Path), help="Cilin, for ChERRANT's own substitution costs."
)
@click.option("--confusion", type=click.Path(path_type=Path), help="A confusion list, likewise.")
@click.option("--benchmark", help="The set's name, for the signature.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def score(
    file: Path,
    scorer: str,
    policy: str | None,
    projection: str | None,
    mode: str | None,
    cilin: Path | None,
    confusion: Path | None,
    benchmark: str | None,
    *,
    as_json: bool,
) -> None:
    """Score FILE: id, source, target, prediction; tabs between, no header, UTF-8."""
    try:
        values = score_file(
            file, scorer, policy, projection, mode,
            dictionaries=Dictionaries(cilin, confusion), benchmark=benchmark,
        )  # fmt: skip
    except UsageError as error:
        raise _Misuse(str(error)) from error
    except CecError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        _print(values)


class _Misuse(click.ClickException):
    """A setting is wrong."""

    exit_code = UsageError.exit_code


def _print(values: Report) -> None:
    hidden = ("signature", "counts_tp_pred_gold.")
    shown = {key: value for key, value in values.items() if not key.startswith(hidden)}
    width = max(map(len, shown))
    for key, value in shown.items():
        click.echo(f"{key:<{width}}  {'-' if value is None else value}")
    click.echo(values["signature"])
