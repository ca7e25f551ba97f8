"""`cecbench suite`: all benchmarks of this machine, as `make bench` runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from cecbench.benchmarks.catalogue import benchmarks
from cecbench.benchmarks.locate import data_folders, find
from cecbench.benchmarks.readers import validation_shards
from cecbench.commands.list import DATA
from cecbench.commands.options import LIMIT, SectionCommand, options_from, system_options
from cecbench.commands.run import default_folder, evaluated
from cecbench.report.overview import headline
from cecbench.report.write import find_runs, write_report
from cecbench.run import Settings
from cecbench.systems.table import check_spec, find_kind
from cecdata.common.errors import CecError, InputError, UsageError

MEANS = (
    "S_C_f1: F1 in percent of sentences that are corrected completely, as the CSCD-NS script "
    "counts them; in brackets its bootstrap interval over sentences"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The benchmarks and systems of a suite, and what is left out, with the reasons."""

    sets: tuple[str, ...]
    systems: tuple[str, ...]
    left_out: tuple[str, ...]


@click.command(
    cls=SectionCommand, epilog="Example: cecbench suite --shards out/data --model out/train/model"
)
@click.option(
    "--shards",
    type=click.Path(path_type=Path),
    default=Path("out/data"),
    show_default=True,
    help="Dataset of `cecdata build` whose validation split is scored.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    default=Path("out/train/model"),
    show_default=True,
    help="Folder of the trained policy; if it does not exist, the built-in policy is scored.",
)
@click.option("--system", multiple=True, help="A further system, as for `run`; may be repeated.")
@DATA
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/bench"),
    show_default=True,
    help="Folder of the runs and the report.",
)
@LIMIT
@click.option(
    "--overwrite", is_flag=True, help="Replace runs of other data or models in that folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@system_options
def suite(
    shards: Path,
    model: Path,
    system: tuple[str, ...],
    data: Path | None,
    out: Path,
    limit: int,
    *,
    overwrite: bool,
    as_json: bool,
    **given: object,
) -> None:
    """Run `copy` and the trained policy on all benchmarks of this machine, and write the report.

    Without a trained policy the built-in one is run. The benchmarks are the validation split of
    --shards and those whose files are in --data, $CECBENCH_DATA or the cache; the others are named.
    """
    for spec in system:  # before hours of work on the others
        check_spec(spec)
    plan = _plan(shards, model, system, data)
    options = options_from(given)
    base = Settings("", "", data=data, overwrite=overwrite, limit=limit, options=options)
    scores: dict[str, object] = {}
    failed: list[str] = []
    for settings in _runs(plan, out, base):
        name = f"{settings.benchmark}, {settings.system}"
        try:
            values = evaluated(settings)
        except CecError as error:
            failed.append(f"{name}: {error}")
            click.echo(f"failed: {failed[-1]}", err=True)
            continue
        scores[name] = {key: values.get(key) for key in (str(values["headline"]), "signature")}
        if not as_json:
            click.echo(headline(values))
    _finish(plan, out, scores, failed, as_json=as_json)


def _plan(shards: Path, model: Path, further: tuple[str, ...], data: Path | None) -> Plan:
    sets, left_out = [], []
    if validation_shards(shards):
        sets.append(str(shards))
    else:
        left_out.append(f"synthetic validation split: {shards} has no data/validation-*.parquet")
    for name, entry in benchmarks().items():
        if find(entry, data):
            sets.append(name)
        else:
            left_out.append(
                f"{name}: not found (`cecbench fetch {name}` downloads it or names its files)"
            )
    systems = ["copy", *further]
    if (model / "config.json").is_file():
        systems.append(f"policy:{model}")
    else:
        left_out.append(f"trained policy: no model in {model} (`make train` trains one)")
        stand_in, why_not = "policy:builtin", _no_builtin()
        if why_not:
            left_out.append(f"built-in policy in its place: {why_not}")
        elif stand_in not in systems:
            systems.append(stand_in)
    if not sets:
        folders = ", ".join(str(folder) for folder in data_folders(data))
        raise InputError(
            f"nothing to score: {shards} has no data/validation-*.parquet (`cecdata build` writes "
            f"one), and none of the {len(benchmarks())} known benchmarks is in {folders}"
        )
    return Plan(tuple(sets), tuple(systems), tuple(left_out))


def _no_builtin() -> str:
    """Return the reason why the built-in policy cannot run; '' if it can."""
    try:
        return find_kind("builtin").unavailable()
    except UsageError as error:
        return str(error)


def _runs(plan: Plan, out: Path, base: Settings) -> Iterator[Settings]:
    for name in plan.sets:
        shown = "synthetic-validation" if name not in benchmarks() else name
        for system in plan.systems:
            folder = default_folder(out, shown, system)
            takes = check_spec(system)[0].takes
            own = {name: value for name, value in base.options.items() if name in takes}
            yield replace(base, benchmark=name, system=system, out=folder, options=own)


def _finish(
    plan: Plan, out: Path, scores: Mapping[str, object], failed: list[str], *, as_json: bool
) -> None:
    files = write_report(find_runs([out / "runs"]), out / "report") if scores else ()
    if as_json:
        record = {
            "scores": scores,
            "left_out": list(plan.left_out),
            "failed": failed,
            "report": [str(path) for path in files],
        }
        click.echo(json.dumps(record, ensure_ascii=False))
    else:
        for line in plan.left_out:
            click.echo(f"not run: {line}")
        if files:
            click.echo(MEANS)
            click.echo(f"report: {files[0]}")
    if failed:
        raise CecError(f"{len(failed)} runs failed; the first: {failed[0]}")
