"""`cecbench report`, `cecbench compare` and `cecbench power`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import click

from cecbench.resampling import LEVEL
from cecbench.results import PREDICTIONS, read_run, read_values, rescored
from cecbench.signature import Signature
from cecbench.significance import Comparison, compare_scores, holm, rows_needed
from cecbench.systems.base import Finite
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
    The report is index.html, report.md and report.json.
    """
    from cecbench.report.write import find_runs, write_report

    for path in write_report(find_runs(runs or (Path("out/bench/runs"),)), out):
        click.echo(str(path))


@click.command(epilog="Example: cecbench compare out/a/score.json out/b/score.json")
@click.argument("scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Compare scores whose signatures differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(scores: tuple[Path, ...], *, force: bool, as_json: bool) -> None:
    """Compare scores of two or more systems, on one benchmark or on several.

    Scores are compared within each benchmark; those whose signatures differ are refused (exit 5).
    Runs of the same sentences are paired: a randomisation test, with the p-values of all pairs
    corrected by Holm's method, and a bootstrap interval of the difference.
    """
    if len(scores) < 2:
        raise UsageError("name at least two scores to compare")
    groups = _by_benchmark(scores)
    different = [line for group in groups for line in _differences(group)]
    if different and not force:
        listed = "\n".join(f"  {line}" for line in different)
        raise RefusedError(
            f"the signatures of these scores differ:\n{listed}\n--force compares them anyway"
        )
    pairs = _pairs(groups)
    if as_json:
        record = {"differences": different, "pairs": pairs}
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    for line in different:
        click.echo(f"differs: {line}")
    for pair in pairs:
        click.echo(_in_words(pair))


@click.command(epilog="Example: cecbench power out/a out/b --points 1 --points 2")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--points",
    type=Finite(min=0, min_open=True),
    multiple=True,
    default=(0.5, 1.0, 2.0),
    show_default=True,
    help="A difference of the headline, in points; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def power(first: Path, second: Path, points: tuple[float, ...], *, as_json: bool) -> None:
    """Say how many rows like these show a difference between systems like FIRST and SECOND.

    FIRST and SECOND are runs on one benchmark. A difference is shown if a test at the level of 5 %
    finds it with a probability of 80 %. The rows needed grow with the square of its inverse.
    """
    scored = [rescored(read_run(path)) for path in (first, second)]
    test = compare_scores(*scored)
    rows = len(scored[0].ids)
    needed = {f"{one:g}": rows_needed(rows, test.detectable, one / 100) for one in points}
    if as_json:
        record = {"rows": rows, "detectable": test.detectable, "rows_needed": needed}
        click.echo(json.dumps(record))
        return
    click.echo(f"{rows:,} rows show a difference of {percent(test.detectable)} points")
    for one, count in needed.items():
        click.echo(f"{one} points need {count:,} rows")


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


def _by_benchmark(paths: Sequence[Path]) -> list[list[Path]]:
    """Return the scores by benchmark; all in one list where a benchmark has only one of them."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault(_signature(path).benchmark, []).append(path)
    return list(groups.values()) if min(map(len, groups.values())) > 1 else [list(paths)]


def _pairs(groups: Sequence[Sequence[Path]]) -> list[dict[str, object]]:
    """Return the pairs within each group, with p-values corrected over all of them."""
    pairs = [pair for group in groups for pair in _pairs_of(group)]
    corrected = holm({n: float(str(pair["p"])) for n, pair in enumerate(pairs) if "p" in pair})
    for number, value in corrected.items():
        pairs[number]["p_holm"] = value
    return pairs


def _pairs_of(paths: Sequence[Path]) -> list[dict[str, object]]:
    folders = [path if path.is_dir() else path.parent for path in paths]
    tested: dict[tuple[int, int], Comparison] = {}
    if all((folder / PREDICTIONS).is_file() for folder in folders):
        scored = [rescored(read_run(path)) for path in paths]
        for one, two in combinations(range(len(paths)), 2):
            if scored[one].ids == scored[two].ids:
                tested[one, two] = compare_scores(scored[one], scored[two])
    pairs = []
    for one, two in combinations(range(len(paths)), 2):
        pair: dict[str, object] = {"first": str(paths[one]), "second": str(paths[two])}
        for name, path in (("first_value", paths[one]), ("second_value", paths[two])):
            values = read_values(path)
            pair[name] = _value(values)
        test = tested.get((one, two))
        if test is not None:
            pair |= {"difference": test.difference, "p": test.p_value, "draws": test.draws}
            pair |= {"low": test.low, "high": test.high, "detectable": test.detectable}
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
    low, high, least = (percent(float(str(pair[key]))) for key in ("low", "high", "detectable"))
    return (
        f"{text}  difference {percent(difference)} points [{low}, {high}] at {LEVEL:.0%}, "
        f"p = {p:.4f}, corrected by Holm {corrected:.4f} (paired randomisation, {pair['draws']} "
        f"draws); these rows can show {least} points"
    )
