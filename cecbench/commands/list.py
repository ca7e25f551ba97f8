"""`cecbench list` and `cecbench fetch`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cecbench.benchmarks.catalogue import benchmarks
from cecbench.benchmarks.fetch import fetch as fetch_files
from cecbench.benchmarks.locate import find
from cecbench.benchmarks.row import Benchmark

if TYPE_CHECKING:
    from cecbench.systems.kind import Kind

DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where benchmarks lie; $CECBENCH_DATA and the cache are searched too.",
)


@click.command(name="list", epilog="Example: cecbench list --json")
@DATA
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def list_benchmarks(data: Path | None, *, as_json: bool) -> None:
    """Name the benchmarks, the kinds of systems, and what lies on this machine."""
    if as_json:
        click.echo(json.dumps(_record(data), ensure_ascii=False, indent=1))
        return
    width = max(map(len, benchmarks()))
    for name, entry in benchmarks().items():
        found = find(entry, data)
        rows = f"{entry.rows:>6}" if entry.rows else "     ?"
        state = "found" if found else "missing"
        click.echo(f"{name:<{width}}  {rows} rows  {state:<7}  {entry.title}")
    click.echo("\nA benchmark may also be a file (.tsv .jsonl .json .parquet .m2) or a folder of")
    click.echo("shards, whose validation split is read.\n")
    for kind in _kinds():
        click.echo(f"--system {kind.form:<18} {kind.meaning}")


@click.command(epilog="Example: cecbench fetch lemon/car --accept-licence")
@click.argument("name")
@click.option("--accept-licence", is_flag=True, help="You keep to the licence that is shown.")
def fetch(name: str, *, accept_licence: bool) -> None:
    """Download the benchmark NAME into the cache and check its digest."""

    def accept(entry: Benchmark) -> bool:
        click.echo(f"{entry.title}: {entry.licence}\n{entry.citation}", err=True)
        if accept_licence or not sys.stdin.isatty():
            return accept_licence
        return click.confirm("Do you keep to this licence?", err=True)

    for path in fetch_files(name, accept=accept):
        click.echo(str(path))


def _record(data: Path | None) -> dict[str, object]:
    listed = {}
    for name, entry in benchmarks().items():
        found = find(entry, data)
        listed[name] = {
            "title": entry.title,
            "rows": entry.rows,
            "licence": entry.licence,
            "citation": entry.citation,
            "homepage": entry.homepage,
            "files": [[file.path for file in copy.files] for copy in entry.copies],
            "urls": [[file.url for file in copy.files] for copy in entry.copies],
            "sha256": [[file.sha256 for file in copy.files] for copy in entry.copies],
            "found": [str(path) for path in found[1]] if found else None,
            "note": entry.note,
        }
    return {"benchmarks": listed, "systems": {kind.name: kind.form for kind in _kinds()}}


def _kinds() -> tuple[Kind[Any], ...]:
    from cecbench.systems.table import KINDS

    return KINDS
