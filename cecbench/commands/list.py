"""`cecbench list` and `cecbench fetch`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from cecbench.benchmarks.catalogue import Benchmark, benchmarks
from cecbench.benchmarks.locate import fetch as fetch_files
from cecbench.benchmarks.locate import find

DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of benchmarks; $CECBENCH_DATA and the cache are searched after it.",
)


@click.command(name="list", epilog="Example: cecbench list --json")
@DATA
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_benchmarks(data: Path | None, *, as_json: bool) -> None:
    """List the benchmarks, which of them are on this machine, and the kinds of systems."""
    from cecbench.systems.table import broken, kinds

    if as_json:
        click.echo(json.dumps(_record(data), ensure_ascii=False, indent=1))
        return
    width = max(map(len, benchmarks()))
    for name, entry in benchmarks().items():
        rows = f"{entry.rows:>6}" if entry.rows else "     ?"
        state = "found" if find(entry, data) else "missing"
        click.echo(f"{name:<{width}}  {rows} rows  {state:<7}  {entry.title}")
    click.echo("\nA benchmark may also be a file (.tsv .csv .json .parquet .m2 …) or a dataset of")
    click.echo("`cecdata build`, whose validation split is read.\n")
    for kind in kinds():
        click.echo(f"--system {kind.form:<18} {kind.meaning}")
    for reason in broken():
        click.echo(f"left out: {reason}", err=True)


@click.command(epilog="Example: cecbench fetch lemon/car --accept-licence")
@click.argument("name")
@click.option("--accept-licence", is_flag=True, help="Declare that you will keep to the licence.")
def fetch(name: str, *, accept_licence: bool) -> None:
    """Download the benchmark NAME into the cache and check its digest."""

    def accept(entry: Benchmark) -> bool:
        click.echo(f"{entry.title}: {entry.licence}\n{entry.citation}", err=True)
        if accept_licence or not sys.stdin.isatty():
            return accept_licence
        return click.confirm("Will you keep to this licence?", err=True)

    for path in fetch_files(name, accept=accept):
        click.echo(str(path))


def _record(data: Path | None) -> dict[str, object]:
    from cecbench.systems.table import kinds

    listed = {}
    for name, entry in benchmarks().items():
        place = find(entry, data)
        found = [str(path) for path in place[1]] if place else None
        listed[name] = {**asdict(entry), "found": found}
    return {"benchmarks": listed, "systems": {kind.name: kind.form for kind in kinds()}}
