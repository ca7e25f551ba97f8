"""The figures of a report, drawn from the user's runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal, TypeAlias

from cecbench.breakdown import COUNTS, ROWS
from cecbench.report.figures import COLOURS, Point, bars, curves, intervals
from cecbench.report.overview import Overview, row_names
from cecbench.results import Run
from cecbench.score_shape import Rates

BEST = "Qwen3-32B-RL"
Kind: TypeAlias = Literal["category", "errors"]


def drawn(view: Overview) -> list[str]:
    """Return the systems that the figures show.

    Those that change nothing are left out, because all their scores are 0; of the others no more
    are drawn than there are colours, those with the highest mean.
    """
    means = {
        line.name: fmean(cell.value or 0.0 for cell in line.cells.values())
        for line in view.lines
        if line.yours and not line.changes_nothing
    }
    best = sorted(means, key=lambda name: -means[name])[:COLOURS]
    return [name for name in means if name in best]


def scores_with_intervals(view: Overview, names: Sequence[str]) -> str:
    """Draw the headlines of these systems with intervals, and published values as lines across."""
    yours = [line for line in view.lines if line.yours and line.name in names]
    labels = [c for c in view.columns if c != "avg" and any(c in line.cells for line in yours)]
    series = {
        line.name: {
            name: Point(cell.value, cell.low, cell.high)
            for name, cell in line.cells.items()
            if cell.value is not None and name in labels
        }
        for line in yours
    }
    marks = {name: _published(view, name, labels) for name in ("GPT-4", BEST)}
    known = {name: points for name, points in marks.items() if points}
    return intervals("F1 by benchmark, with 95 % intervals", labels, series, known)


def by_category_and_number(runs: Sequence[Run], names: Sequence[str]) -> dict[str, list[str]]:
    """Return each benchmark's figures: bars by category, and a curve over the number of errors.

    A system has one colour in all of them, the one it has in `scores_with_intervals`.
    """
    figures: dict[str, list[str]] = {}
    tones = {name: index for index, name in enumerate(names)}
    named_runs = zip(runs, row_names(runs), strict=True)
    for benchmark, systems in _grouped((r, n) for r, n in named_runs if n in tones).items():
        chosen = list(systems.values())
        kinds = _labels(chosen, "category", ROWS)
        numbers = _labels(chosen, "errors", COUNTS)
        drawings = figures[benchmark] = []
        if kinds:
            series, sizes = _series(systems, "category"), _sizes(chosen, "category")
            drawings.append(bars(f"F1 by category, {benchmark}", kinds, series, sizes, tones))
        if len(numbers) > 1:
            series, sizes = _series(systems, "errors"), _sizes(chosen, "errors")
            title = f"F1 by number of errors, {benchmark}"
            drawings.append(curves(title, numbers, series, below=sizes, tones=tones))
    return figures


def _grouped(named: Iterable[tuple[Run, str]]) -> dict[str, dict[str, Run]]:
    """Return the runs by benchmark and then by the system's name in the report."""
    groups: dict[str, dict[str, Run]] = {}
    for run, name in named:
        groups.setdefault(run.benchmark, {})[name] = run
    return groups


def _labels(runs: Iterable[Run], kind: Kind, order: Sequence[str]) -> list[str]:
    present = {name for run in runs for name in run.values["breakdown"][kind]}
    return [name for name in order if name in present]


def _sizes(runs: Iterable[Run], kind: Kind) -> dict[str, str]:
    """Return each part's number of sentences; a range where the runs scored different ones."""
    sizes: dict[str, set[int]] = {}
    for run in runs:
        for name, part in run.values["breakdown"][kind].items():
            sizes.setdefault(name, set()).add(part["sentences"])
    return {
        name: f"n={min(counts)}" + (f"–{max(counts)}" if len(counts) > 1 else "")
        for name, counts in sizes.items()
    }


def _series(systems: Mapping[str, Run], kind: Kind) -> dict[str, dict[str, Point]]:
    return {name: _points(run.values["breakdown"][kind]) for name, run in systems.items()}


def _points(parts: Mapping[str, Rates]) -> dict[str, Point]:
    return {
        name: Point(
            100 * part["f"], 100 * part["low"], 100 * part["high"], f"{part['sentences']} sentences"
        )
        for name, part in parts.items()
        if part["f"] is not None
    }


def _published(view: Overview, system: str, labels: Sequence[str]) -> dict[str, Point]:
    line = next(line for line in view.lines if line.name == system and not line.yours)
    values = {name: line.cells[name].value for name in labels if name in line.cells}
    return {name: Point(value) for name, value in values.items() if value is not None}
