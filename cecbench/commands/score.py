"""`cecbench score`: the numbers of a published scorer for a file of predictions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from cecbench.commands.options import add_scoring_options
from cecbench.metrics.base import Report, describe_behaviour
from cecbench.results import name_in_signature
from cecbench.scorers import OPTIONS, score_file
from cecdata.common.command_group import SectionCommand


@click.command(
    cls=SectionCommand,
    epilog="Example: cecbench score answers.tsv --scorer cscd --unequal-length revert --json",
)
@click.argument("file", type=click.Path(path_type=Path))
@add_scoring_options
@click.option(
    "--benchmark",
    help="Name of the benchmark in the signature; if FILE belongs to a run, the default is "
    "the benchmark of that run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(
    file: Path, scorer: str, benchmark: str | None, *, as_json: bool, **arguments: object
) -> None:
    """Score FILE, a table or JSON with id, source, target and prediction.

    The columns of a table have this order, unless its first line names them.
    """
    options = {name: arguments[name] for name in OPTIONS}
    name = name_in_signature(file) if benchmark is None else benchmark
    values = score_file(file, scorer, options=options, benchmark=name)
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        for line in _describe_score(values):
            click.echo(line)


#: last parts of keys that belong to one group of numbers
_PART = re.compile(r"(?P<group>.+)[._](?P<part>p|r|f1|fpr|acc|counts)", re.IGNORECASE)
_SAID = (
    *("scorer", "unequal_length", "scored_unequal_length", "unequal_length_means"),
    *("rows", "rows_scored", "rows_read"),
)


def _describe_score(values: Report) -> Iterator[str]:
    """Yield the score for people: the headline, the other numbers by group, what they mean."""
    level = str(values["signature.level"])
    yield f"{level}  {_format_value(values.get(level))}"
    interval = values.get("interval")
    if isinstance(interval, dict):
        low, high = (f"{100 * interval[end]:.3f}" for end in ("low", "high"))
        share = 100 * interval["level"]
        yield f"  {share:g} % interval of {interval['measure']}: {low} to {high} %"
    reasons = {
        key: value for key, value in values.items() if isinstance(value, str) and "because" in key
    }
    groups = _group_numbers({key: values[key] for key in values if key not in reasons})
    width = max(map(len, groups))
    for group, numbers in groups.items():
        yield f"  {group:<{width}}  {'  '.join(numbers)}"
    yield from (f"  {key}: {reason}" for key, reason in reasons.items())
    yield from (f"  {line}" for line in describe_behaviour(values))
    how = values["unequal_length_means"]
    yield f"  {values['rows_scored']} of {values['rows_read']} rows: {how}"
    yield str(values["signature"])


def _group_numbers(values: Report) -> dict[str, list[str]]:
    """Return the numbers of a score with their names, by the beginnings of their keys."""
    groups: dict[str, list[str]] = {}
    for key, value in values.items():
        if key in _SAID or key.startswith(("signature", "counts_tp_pred_gold", "interval")):
            continue
        match = _PART.fullmatch(key)
        group, part = match.groups() if match else (key.rpartition(".")[0], key.rpartition(".")[2])
        groups.setdefault(group, []).append(f"{part} {_format_value(value)}")
    counts = values.get("counts_tp_pred_gold")
    for group, triple in counts.items() if isinstance(counts, dict) else ():
        groups[group].append("tp {} predicted {} gold {}".format(*triple))
    return groups


def _format_value(value: object) -> str:
    """Return a number with four decimals, a list with slashes, None as a hyphen."""
    if isinstance(value, float):
        return f"{round(value, 4):g}"
    if isinstance(value, list):
        return "/".join(map(str, value))
    return "-" if value is None else str(value)
