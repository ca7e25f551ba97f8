"""`cecbench report`, `cecbench compare` and `cecbench published`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import click

from cecbench import published as tables
from cecbench.results import PREDICTIONS, read_run, read_values, rescored
from cecbench.signature import Signature
from cecbench.significance import Comparison, compare_scores, holm
from cecdata.common.errors import InputError, RefusedError, UsageError
from cecdata.common.html import percent

_PREFIX = "signature."


@click.command(epilog="Example: cecbench report out/bench/runs --out out/bench/report")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/bench/report"),
    show_default=True,
    help="Folder of the report.",
)
def report(runs: tuple[Path, ...], out: Path) -> None:
    """Write a report of RUNS beside the published rows.

    RUNS are folders, which are searched with their subfolders; without any, out/bench/runs is read.
    The report is index.html, report.md, report.tex, report.csv and report.json.
    """
    from cecbench.report.write import find_runs, write_report

    for path in write_report(find_runs(runs or (Path("out/bench/runs"),)), out):
        click.echo(str(path))


@click.command(epilog="Example: cecbench compare out/a/score.json out/b/score.json")
@click.argument("scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Compare scores whose signatures differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(scores: tuple[Path, ...], *, force: bool, as_json: bool) -> None:
    """Compare two or more scores; scores whose signatures differ are refused (exit 5).

    Runs of the same sentences are tested by paired approximate randomisation. The p-values of
    several pairs are corrected by Holm's method.
    """
    if len(scores) < 2:
        raise UsageError("name at least two scores to compare")
    different = _differences(scores)
    if different and not force:
        listed = "\n".join(f"  {line}" for line in different)
        raise RefusedError(
            f"the signatures of these scores differ:\n{listed}\n--force compares them anyway"
        )
    pairs = _pairs(scores)
    if as_json:
        record = {"differences": different, "pairs": pairs}
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    for line in different:
        click.echo(f"differs: {line}")
    for pair in pairs:
        click.echo(_in_words(pair))


@click.command(epilog="Example: cecbench published main")
@click.argument("names", nargs=-1)
def published(names: tuple[str, ...]) -> None:
    """Print the paper's tables as JSON: all of them, or those of the given NAMES.

    A row whose printed average is not the mean of its numbers also has `avg_recomputed`.
    """
    everything = tables.as_json()
    for name in names:
        tables.table(name)  # an unknown name is refused with the known ones
    chosen = {name: everything[name] for name in names} if names else everything
    click.echo(json.dumps(chosen, ensure_ascii=False, indent=1))


def _signature(path: Path) -> Signature:
    values = read_values(path)
    own = {k.removeprefix(_PREFIX): v for k, v in values.items() if k.startswith(_PREFIX)}
    try:
        return Signature.from_dict(own)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _differences(paths: Sequence[Path]) -> list[str]:
    first = _signature(paths[0])
    lines = []
    for path in paths[1:]:
        for name, mine, theirs in first.differences(_signature(path)):
            lines.append(f"{name}: {mine} ({paths[0]}) / {theirs} ({path})")
    return lines


def _pairs(paths: Sequence[Path]) -> list[dict[str, object]]:
    folders = [path if path.is_dir() else path.parent for path in paths]
    tested: dict[tuple[int, int], Comparison] = {}
    if all((folder / PREDICTIONS).is_file() for folder in folders):
        scored = [rescored(read_run(path)) for path in paths]
        for one, two in combinations(range(len(paths)), 2):
            if scored[one].ids == scored[two].ids:
                tested[one, two] = compare_scores(scored[one], scored[two])
    corrected = holm({pair: one.p_value for pair, one in tested.items()})
    pairs = []
    for one, two in combinations(range(len(paths)), 2):
        pair: dict[str, object] = {"first": str(paths[one]), "second": str(paths[two])}
        for name, path in (("first_value", paths[one]), ("second_value", paths[two])):
            values = read_values(path)
            pair[name] = _value(values)
        test = tested.get((one, two))
        if test is not None:
            pair |= {"difference": test.difference, "p": test.p_value, "draws": test.draws}
            pair["p_holm"] = corrected[one, two]
        pairs.append(pair)
    return pairs


def _value(values: Mapping[str, object]) -> object:
    """Return the headline as printed, or the interval's value where the script prints nothing."""
    printed = values.get(str(values["signature.level"]))
    interval = values.get("interval")
    if printed is None and isinstance(interval, Mapping):
        return round(100 * float(str(interval["value"])), 3)
    return printed


def _in_words(pair: dict[str, object]) -> str:
    one, two = ("–" if pair[key] is None else pair[key] for key in ("first_value", "second_value"))
    text = f"{pair['first']} {one}  {pair['second']} {two}"
    if "p" not in pair:
        return f"{text}  (no test: it needs the predictions of both runs, of the same sentences)"
    difference, p, corrected = (float(str(pair[key])) for key in ("difference", "p", "p_holm"))
    return (
        f"{text}  difference {percent(difference)} points, p = {p:.4f}, "
        f"corrected by Holm {corrected:.4f} (paired randomisation, {pair['draws']} draws)"
    )
