"""`cecbench list`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from cecbench.benchmarks.catalogue import find_copy, read_catalogue

DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of benchmarks; it is searched before $CECBENCH_DATA and the cache.",
)


@click.command(name="list", epilog="Example: cecbench list --json")
@DATA
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_benchmarks(data: Path | None, *, as_json: bool) -> None:
    """List the benchmarks, which of them are on this machine, and the kinds of systems."""
    from cecbench.systems.table import list_kinds

    if as_json:
        click.echo(json.dumps(_describe_in_json(data), ensure_ascii=False, indent=1))
        return
    width = max(map(len, read_catalogue()))
    for name, entry in read_catalogue().items():
        rows = f"{entry.rows:>6}" if entry.rows else "     ?"
        state = "found" if find_copy(entry, data) else "missing"
        click.echo(f"{name:<{width}}  {rows} rows  {state:<7}  {entry.title}")
    click.echo("\nA benchmark may also be a file (.tsv .csv .json .parquet .m2 …) or a dataset of")
    click.echo("`cecdata build`, whose validation split is read.\n")
    for kind in list_kinds():
        click.echo(f"--system {kind.form:<18} {kind.meaning}")


def _describe_in_json(data: Path | None) -> dict[str, object]:
    """Return the benchmarks, with the paths of those found, and the kinds of systems."""
    from cecbench.systems.table import list_kinds

    benchmarks = {}
    for name, entry in read_catalogue().items():
        _, paths = find_copy(entry, data) or (None, None)
        found = None if paths is None else [str(path) for path in paths]
        benchmarks[name] = {**asdict(entry), "found": found}
    return {"benchmarks": benchmarks, "systems": {kind.name: kind.form for kind in list_kinds()}}
