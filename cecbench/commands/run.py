"""`cecbench run`: a system on a benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import click

from cecbench.commands import options
from cecbench.commands.list import DATA
from cecbench.metrics.base import describe_behaviour
from cecbench.results import RunScore
from cecbench.run import Settings, evaluate
from cecbench.scorers import OPTIONS
from cecbench.systems.base import STATUSES
from cecbench.systems.table import parse_spec
from cecdata.common.command_group import SectionCommand
from cecdata.common.html import format_percent
from cecdata.common.progress import Progress, suggest


@click.command(
    cls=SectionCommand,
    epilog="Example: cecbench run --system predictions:answers.tsv --benchmark lemon/car --json",
)
@click.option(
    "--system", required=True, help="System to run, in one of the forms that `cecbench list` shows."
)
@click.option(
    "--benchmark",
    required=True,
    help="Name of a benchmark, a file, or a dataset of `cecdata build`.",
)
@DATA
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the run (default: see above)."
)
@options.add_scoring_options
@click.option("--name", default="", show_default=False, help="Name of the system in reports.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=0,
    help="Score a fixed sample of this many rows; 0 scores all.",
)
@click.option("--allow-missing", is_flag=True, help="Count missing answers as unchanged text.")
@click.option("--overwrite", is_flag=True, help="Replace another run in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.add_system_options
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
    **arguments: object,
) -> None:
    """Run a system on a benchmark and score it.

    Runs of models and endpoints are written to --out, by default out/bench/runs/BENCHMARK/SYSTEM;
    the same command continues an interrupted run. The systems `copy`, `channel`,
    `combined` and `predictions:FILE` write a run only if --out is given.
    """
    # without folders of its own, `cecbench report` reads the runs below the default one
    report = "cecbench report" if out is None else f"cecbench report {out.parent}"
    if out is None and parse_spec(system)[0].recorded:
        out = Path("out/bench/runs") / _to_folder_name(benchmark) / _to_folder_name(system)
    settings = Settings(
        benchmark=benchmark,
        system=system,
        out=out,
        data=data,
        scorer=scorer,
        scoring={name: arguments[name] for name in OPTIONS},
        allow_missing=allow_missing,
        overwrite=overwrite,
        limit=limit,
        name=name,
        options=options.select_stated_options(arguments),
    )
    with Progress():
        values = evaluate(settings)
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        for line in (describe_headline(values), *describe_parts(values), values["signature"]):
            click.echo(line)
        if out is not None:
            suggest(report, f"cecbench compare {quote(str(out))} OTHER")


def describe_headline(values: RunScore) -> str:
    """Return system, benchmark, the headline number and its interval in one line."""
    name, interval = values["headline"], values.get("interval")
    printed = values.get(name)
    if printed is None:
        value = interval["value"] if interval else None
        printed = f"{format_percent(value)} (the published script prints nothing here)"
    text = f"{values['system']} on {values['benchmark']}: {name} {printed}"
    if interval:
        low, high = format_percent(interval["low"]), format_percent(interval["high"])
        text += f"  [{low}, {high}] at {interval['level']:.0%}"
    return text + ("  (synthetic errors)" if values["synthetic"] else "")


def describe_parts(values: RunScore) -> Iterator[str]:
    """Yield what a reader must know of the number, then its parts."""
    detectable = values.get("interval", {}).get("detectable", 0)
    if 0 < detectable < 1:  # 0 of a system without hits; above 1 of a few rows
        least = format_percent(detectable)
        yield f"  smallest difference that these rows can show (independent errors): {least} points"
    if set(values["answers"]) != {"ok"}:
        for status, count in values["answers"].items():
            yield f"  {count:>6} × {status}: {STATUSES.get(status, 'a status of another version')}"
    if values["unanswered"]:
        means = values["unanswered_means"]
        yield f"  {values['unanswered']} sentences without a readable answer: {means}"
    for what, count in values["retried"].items():
        yield f"  {count:>6} × {what}: the request was sent again, or given up"
    yield from (f"  {line}" for line in describe_behaviour(values))
    parts = values["breakdown"]
    clean = parts["clean"]
    if clean["sentences"]:
        counts = f"{clean['changed']} of {clean['sentences']}"
        rate = format_percent(clean["over_correction_rate"], unit=" %")
        yield f"  clean sentences changed: {counts} ({rate})"
    yield from _list_categories(parts["category"])
    if matched := values["system_identity"].get("matched_by"):
        yield f"predictions and rows were matched by {matched}"


def _list_categories(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table by category, with the number of sentences, P, R and F."""
    if not parts:
        return
    yield f"  {'by category':<30} {'n':>6} {'P':>7} {'R':>7} {'F':>7}"
    for name, part in parts.items():
        numbers = " ".join(f"{format_percent(part[rate]):>7}" for rate in "prf")
        yield f"    {name:<28} {part['sentences']:>6} {numbers}"


def _to_folder_name(name: str) -> str:
    """Return a name whose other characters than letters, digits and . _ - are hyphens."""
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in name.replace("://", "-"))
    return plain.strip("-.") or "unnamed"
