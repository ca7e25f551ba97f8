"""`cecbench run`: a system on a benchmark; and `cecbench suite`: all benchmarks of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from cecbench.benchmarks.catalogue import benchmarks, data_folders, find
from cecbench.benchmarks.readers import validation_shards
from cecbench.commands.list import DATA
from cecbench.commands.options import (
    LIMIT,
    options_from,
    scoring_from,
    scoring_options,
    system_options,
)
from cecbench.metrics.base import remarks
from cecbench.page import write_report
from cecbench.results import RunScore, find_runs
from cecbench.run import Settings, evaluate
from cecbench.systems.base import STATUSES
from cecbench.systems.table import check_spec
from cecdata.common.command_group import SectionCommand
from cecdata.common.errors import CecError, InputError
from cecdata.common.html import percent
from cecdata.common.progress import Progress, suggest, tell


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
@scoring_options
@click.option("--name", default="", show_default=False, help="Name of the system in reports.")
@LIMIT
@click.option("--allow-missing", is_flag=True, help="Count missing answers as unchanged text.")
@click.option("--overwrite", is_flag=True, help="Replace another run in --out.")
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
    **arguments: object,
) -> None:
    """Run a system on a benchmark and score it.

    Runs of models and endpoints are written to --out, by default out/bench/runs/BENCHMARK/SYSTEM;
    the same command continues an interrupted run. The systems `copy`, `channel`,
    `combined` and `predictions:FILE` write a run only if --out is given.
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
        scoring=scoring_from(arguments),
        allow_missing=allow_missing,
        overwrite=overwrite,
        limit=limit,
        name=name,
        options=options_from(arguments),
    )
    values = evaluate_with_bar(settings)
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        print_run(values)
        if out is not None:
            suggest(report, f"cecbench compare {quote(str(out))} OTHER")


def default_folder(base: Path, benchmark: str, system: str) -> Path:
    """Return the folder of a run, which is named after the benchmark and the system."""
    return base / "runs" / _plain(benchmark) / _plain(system)


def evaluate_with_bar(settings: Settings) -> RunScore:
    """Evaluate, with a progress bar on stderr if that is a terminal."""
    with Progress():
        return evaluate(settings)


def print_run(values: RunScore) -> None:
    """Print a score: the headline with its interval, remarks, parts, and the signature."""
    click.echo(headline(values))
    for line in lines_of(values):
        click.echo(line)
    identity = values["system_identity"]
    if "matched_by" in identity:
        click.echo(f"predictions and rows were matched by {identity['matched_by']}")
    click.echo(values["signature"])


def headline(values: RunScore) -> str:
    """Return system, benchmark, the headline number and its interval in one line."""
    name, interval = values["headline"], values.get("interval")
    printed = values.get(name)
    if printed is None:
        value = interval["value"] if interval else None
        printed = f"{percent(value)} (the published script prints nothing here)"
    text = f"{values['system']} on {values['benchmark']}: {name} {printed}"
    if interval:
        low, high = percent(interval["low"]), percent(interval["high"])
        text += f"  [{low}, {high}] at {interval['level']:.0%}"
    return text + ("  (synthetic errors)" if values["synthetic"] else "")


def lines_of(values: RunScore) -> Iterator[str]:
    """Yield what a reader must know of the number, then its parts."""
    if detectable := values.get("interval", {}).get("detectable"):  # 0 of a system without hits
        least = percent(detectable)
        yield f"  smallest difference that these rows can show (independent errors): {least} points"
    if set(values["answers"]) != {"ok"}:
        for status, count in values["answers"].items():
            yield f"  {count:>6} × {status}: {STATUSES.get(status, 'a status of another version')}"
    if values["unanswered"]:
        means = values["unanswered_means"]
        yield f"  {values['unanswered']} sentences without a readable answer: {means}"
    for what, count in values["retried"].items():
        yield f"  {count:>6} × {what}: the request was sent again, or given up"
    yield from (f"  {line}" for line in remarks(values))
    parts = values["breakdown"]
    clean = parts["clean"]
    if clean["sentences"]:
        counts = f"{clean['changed']} of {clean['sentences']}"
        rate = percent(clean["over_correction_rate"], unit=" %")
        yield f"  clean sentences changed: {counts} ({rate})"
    yield from _table("by category", parts["category"])


def _table(title: str, parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not parts:
        return
    yield f"  {title:<30} {'n':>6} {'P':>7} {'R':>7} {'F':>7}"
    for name, part in parts.items():
        numbers = " ".join(f"{percent(rate):>7}" for rate in (part["p"], part["r"], part["f"]))
        yield f"    {name:<28} {part['sentences']:>6} {numbers}"


def _plain(name: str) -> str:
    plain = "".join(c if c.isalnum() or c in "._-" else "-" for c in name.replace("://", "-"))
    return plain.strip("-.") or "unnamed"


MEANS = (
    "S_C_f1: F1 of completely corrected sentences in percent, by the scorer of CSCD-NS; the "
    "brackets hold its bootstrap interval over sentences"
)


SYSTEMS = ("copy", "channel", "combined")  # of every suite


@click.command(epilog="Example: cecbench suite --shards out/data --system policy:out/train")
@click.option(
    "--shards",
    type=click.Path(path_type=Path),
    default=Path("out/data"),
    help="Dataset of `cecdata build` whose validation split is scored.",
)
@click.option("--system", multiple=True, help="Another system, as in `cecbench run`; repeatable.")
@DATA
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/bench"),
    help="Folder of the runs and the report.",
)
@LIMIT
@click.option("--overwrite", is_flag=True, help="Replace runs that used other data or models.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def suite(
    shards: Path,
    system: tuple[str, ...],
    data: Path | None,
    out: Path,
    limit: int,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Run several systems on all benchmarks of this machine, and write a report.

    The systems are `copy`, `channel`, `combined` (the default of `cectrain correct`) and those of
    --system. The benchmarks are the validation split of the dataset --shards, and all whose files
    are in --data, $CECBENCH_DATA or the cache. Systems have their default options here; `cecbench
    run` sets others.
    """
    systems = list(dict.fromkeys([*SYSTEMS, *system]))
    for spec in systems:  # before hours of work
        check_spec(spec)
    sets, without = _sets(shards, data)
    base = Settings("", "", data=data, overwrite=overwrite, limit=limit)
    scores: dict[str, object] = {}
    failed: list[str] = []
    if not as_json:
        click.echo(MEANS)
    for settings in _runs(sets, systems, out, base):
        name = f"{settings.benchmark}, {settings.system}"
        try:
            values = evaluate_with_bar(settings)
        except CecError as error:
            failed.append(f"{name}: {error}")
            tell(f"failed: {failed[-1]}")
            continue
        scores[name] = {key: values.get(key) for key in (str(values["headline"]), "signature")}
        if not as_json:
            click.echo(headline(values))
    _finish(without, out, scores, failed, as_json=as_json)


def _sets(shards: Path, data: Path | None) -> tuple[list[str], list[str]]:
    """Return what a suite scores, and what it goes without, with the reasons."""
    sets = [str(shards)] if validation_shards(shards) else []
    without = [] if sets else [f"synthetic errors: {shards} has no data/validation-*.parquet"]
    present = {name: find(entry, data) is not None for name, entry in benchmarks().items()}
    sets += [name for name, here in present.items() if here]
    if absent := [name for name, here in present.items() if not here]:
        without.append(
            f"{', '.join(absent)}: not found (`cecbench run --system copy --benchmark NAME` tells "
            "where to download each)"
        )
    if not sets:
        folders = ", ".join(str(folder) for folder in data_folders(data))
        raise InputError(
            f"nothing to score: {shards} has no data/validation-*.parquet (`cecdata build` writes "
            f"one), and none of the {len(present)} known benchmarks is in {folders}"
        )
    return sets, without


def _runs(
    sets: Sequence[str], systems: Sequence[str], out: Path, base: Settings
) -> Iterator[Settings]:
    for name in sets:
        called = name if name in benchmarks() else "synthetic-validation"
        for system in systems:
            folder = default_folder(out, called, system)
            yield replace(base, benchmark=name, system=system, out=folder)


def _finish(
    without: list[str], out: Path, scores: Mapping[str, object], failed: list[str], *, as_json: bool
) -> None:
    page = write_report(find_runs([out / "runs"]), out / "report") if scores else None
    if as_json:
        record = {
            "scores": scores,
            "left_out": without,
            "failed": failed,
            "report": str(page) if page else None,
        }
        click.echo(json.dumps(record, ensure_ascii=False))
    else:
        if without:
            click.echo(f"not run: {'; '.join(without)}")
        if page:
            click.echo(f"report: {page}")
    if failed:
        raise CecError(f"{len(failed)} runs failed; the first: {failed[0]}")
