"""`cecbench report` and `cecbench compare`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from cecbench.page import name_runs
from cecbench.resampling import LEVEL
from cecbench.results import Run, find_runs, read_run, rescore_run
from cecbench.scorers import Score
from cecbench.signature import Signature
from cecbench.significance import FEW_ROWS, compare_scores, correct_by_holm
from cecdata.common import markdown as md
from cecdata.common.errors import RefusedError, UsageError
from cecdata.common.html import format_percent
from cecdata.common.markdown import Markdown

_PREFIX = "signature."
_LEVEL = 0.05  # of significance, after correction for all comparisons of the table
_COLUMNS = ("P", "R", "F", "OC")
_MARK = "†"


@click.command(epilog="Example: cecbench report out/bench/runs --out out/bench/report")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/bench/report"),
    help="Folder of the report.",
)
def report(runs: tuple[Path, ...], out: Path) -> None:
    """Write a report of RUNS.

    RUNS are folders, searched with their subfolders; the default is out/bench/runs. The report is
    index.html. For a table, use `cecbench compare --format markdown`.
    """
    from cecbench.page import write_report

    click.echo(str(write_report(find_runs(runs or (Path("out/bench/runs"),)), out)))


@click.command(epilog="Example: cecbench compare out/a out/b --format markdown")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Compare scores whose signatures differ.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    help="Output format; markdown prints one table for a paper.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(runs: tuple[Path, ...], form: str, *, force: bool, as_json: bool) -> None:
    """Compare runs of two or more systems, on one benchmark or on several.

    Runs are compared within each benchmark. A signature is the line that says how a score was
    computed; runs whose signatures differ are refused (exit code 5). Runs on the same sentences are
    compared by a paired randomisation test and by a bootstrap interval of the difference. Holm's
    method corrects the p-values.
    """
    if len(runs) < 2:
        raise UsageError("name at least two runs to compare")
    groups = _group_by_benchmark([_Side.read(path) for path in runs])
    different = [line for group in groups for line in _list_differences(group)]
    if different and not force:
        listed = "\n".join(f"  {line}" for line in different)
        raise RefusedError(
            f"the signatures of these scores differ:\n{listed}\nTo compare them anyway, add --force"
        )
    pairs = _compare_pairs(groups)
    if as_json:
        record = {"differences": different, "pairs": pairs}
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    if form != "text":
        click.echo(_make_paper_table(groups, pairs), nl=False)
        return
    for line in different:
        click.echo(f"the signatures differ: {line}")
    for pair in pairs:
        click.echo(_describe_pair(pair))


@dataclass(frozen=True, slots=True)
class _Side:
    """A run as it was named, and its score."""

    path: Path
    run: Run
    score: Score

    @classmethod
    def read(cls, path: Path) -> _Side:
        run = read_run(path)
        return cls(path, run, rescore_run(run))

    @property
    def signature(self) -> Signature:
        """The signature as it was written: that of `score` may be of another version."""
        named = self.run.values.items()
        return Signature(**{k.removeprefix(_PREFIX): v for k, v in named if k.startswith(_PREFIX)})

    @property
    def value(self) -> object:
        """The headline as printed, or the interval's value where the script prints nothing."""
        values = self.run.values
        printed = values.get(values["headline"])
        if printed is None and "interval" in values:
            return round(100 * float(values["interval"]["value"]), 3)
        return printed

    @property
    def percentages(self) -> tuple[float | None, ...]:
        """Precision, recall, F and over-correction; None where nothing is divided."""
        columns = list(self.score.scorer.headline_columns)
        tp, predicted, gold = self.score.counts[:, columns].sum(axis=0).tolist()
        rate = self.run.values["breakdown"]["clean"]["over_correction_rate"]
        return (
            100 * tp / predicted if predicted else None,
            100 * tp / gold if gold else None,
            100 * self.score.interval().value,
            None if rate is None else 100 * rate,
        )


def _list_differences(sides: Sequence[_Side]) -> list[str]:
    """Return a line for each field in which a signature differs from the first run's."""
    first = sides[0]
    return [
        f"{name}: {mine} ({first.path}) / {theirs} ({side.path})"
        for side in sides[1:]
        for name, mine, theirs in first.signature.differences(side.signature)
    ]


def _group_by_benchmark(sides: Sequence[_Side]) -> list[list[_Side]]:
    """Return the runs by benchmark; all in one list where a benchmark has only one of them."""
    groups: dict[str, list[_Side]] = {}
    for side in sides:
        groups.setdefault(side.signature.benchmark, []).append(side)
    return list(groups.values()) if min(map(len, groups.values())) > 1 else [list(sides)]


def _compare_pairs(groups: Sequence[Sequence[_Side]]) -> list[dict[str, Any]]:
    """Return the pairs within each group, with p-values corrected over all of them."""
    pairs = []
    for first, second in (sides for group in groups for sides in combinations(group, 2)):
        pair: dict[str, Any] = {"first": str(first.path), "second": str(second.path)}
        pair |= {"first_value": first.value, "second_value": second.value}
        if first.score.ids == second.score.ids:
            test = compare_scores(first.score, second.score)
            pair |= {"difference": test.difference, "p": test.p_value, "draws": test.draws}
            pair |= {"low": test.low, "high": test.high, "detectable": test.detectable}
            pair |= {"rows": len(first.score.ids)}
        pairs.append(pair)
    corrected = correct_by_holm({n: pair["p"] for n, pair in enumerate(pairs) if "p" in pair})
    for number, value in corrected.items():
        pairs[number]["p_holm"] = value
    return pairs


def _make_paper_table(groups: Sequence[Sequence[_Side]], pairs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table in Markdown: one line a system, four columns a benchmark."""
    p_values = {frozenset((p["first"], p["second"])): p["p_holm"] for p in pairs if "p_holm" in p}
    sides = [side for group in groups for side in group]
    names = [name for _, name in name_runs([side.run for side in sides])]
    name_of = dict(zip((side.path for side in sides), names, strict=True))
    heads = [f"{group[0].run.benchmark} {column}" for group in groups for column in _COLUMNS]
    rows = {name: [md.escape_text(name)] for name in names}
    for group in groups:
        systems = [name_of[side.path] for side in group]
        cells_of = dict(zip(systems, _make_cells(group, p_values), strict=True))
        for name, row in rows.items():
            row.extend(cells_of.get(name, [Markdown("")] * len(_COLUMNS)))
    caption = (
        "Precision, recall and F, and the share of error-free sentences changed (OC), in percent. "
        f"Bold: the best of a column. {_MARK}: differs significantly from the highest F (paired "
        f"randomisation, p < {_LEVEL:g} after Holm's correction for all pairs). F is "
        f"F{sides[0].score.scorer.beta:g}. Signatures: "
        f"{'; '.join(str(group[0].run.values['signature']) for group in groups)}."
    )
    return f"{md.make_table(['system', *heads], rows.values())}\n\n{md.escape_text(caption)}\n"


def _make_cells(
    group: Sequence[_Side], p_values: Mapping[frozenset[str], float]
) -> Iterator[list[Markdown]]:
    """Yield each system's cells on a benchmark, the best bold; `p_values` are by paths of runs."""
    best = [max(side.percentages[at] or 0.0 for side in group) for at in range(3)]
    winner = max(group, key=lambda side: side.percentages[2] or 0.0)
    for side in group:
        p_value = p_values.get(frozenset((str(side.path), str(winner.path))), 1.0)
        texts = ["–" if number is None else f"{number:.2f}" for number in side.percentages]
        texts[2] += _MARK if p_value < _LEVEL else ""
        for at in range(3):
            if side.percentages[at] == best[at]:
                texts[at] = f"**{texts[at]}**"
        yield list(map(Markdown, texts))


def _describe_pair(pair: Mapping[str, Any]) -> str:
    first, second = (
        "–" if pair[key] is None else pair[key] for key in ("first_value", "second_value")
    )
    text = f"{pair['first']} {first}  {pair['second']} {second}"
    if "p" not in pair:
        return f"{text}  (not tested, because the sentences differ)"
    difference, low, high, least = (
        format_percent(pair[key]) for key in ("difference", "low", "high", "detectable")
    )
    shows = f"these rows can show a difference of {least} points or more"
    if pair["rows"] < FEW_ROWS:
        shows = f"{pair['rows']} rows are too few to rely on the interval and on p"
    return (
        f"{text}  difference {difference} points [{low}, {high}] at {LEVEL:.0%}, p = "
        f"{pair['p']:.4f}, corrected by Holm {pair['p_holm']:.4f} (paired randomisation, "
        f"{pair['draws']} draws); {shows}"
    )
