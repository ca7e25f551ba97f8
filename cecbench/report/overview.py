"""The scores, names and figures of several runs, which a report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from cecbench.report.plot import COLOURS, plot
from cecbench.results import Run, RunScore, headline_of


@dataclass(frozen=True, slots=True)
class Cell:
    """A score in percent, and its interval if there is one."""

    value: float | None
    low: float | None = None
    high: float | None = None


def scores_of(runs: Sequence[Run]) -> dict[str, dict[str, Cell]]:
    """Return the headlines of each system by benchmark."""
    scores: dict[str, dict[str, Cell]] = {}
    for run, name in zip(runs, row_names(runs), strict=True):
        scores.setdefault(name, {})[run.benchmark] = cell_of(run.values)
    return scores


def row_names(runs: Sequence[Run]) -> list[str]:
    """Return the systems' names, with the scoring where it is not the default.

    Runs of one name on one benchmark get their folders behind it.
    """
    names = [name_of(run) for run in runs]
    often = Counter((run.benchmark, name) for run, name in zip(runs, names, strict=True))
    twice = {name for (_, name), count in often.items() if count > 1}
    return [
        f"{name} [{run.folder}]" if name in twice else name
        for run, name in zip(runs, names, strict=True)
    ]


def name_of(run: Run) -> str:
    """Return the system's name, with the scoring where it is not the default."""
    scoring = (run.values["scorer"], run.values["policy"])
    return run.system if scoring == ("cscd", "revert") else f"{run.system} ({', '.join(scoring)})"


def cell_of(values: RunScore) -> Cell:
    """Return the headline in percent, whatever the scorer's own unit, with its interval."""
    printed, interval = headline_of(values), values.get("interval")
    if not interval:
        return Cell(printed)
    exact = 100 * interval["value"]
    # If the script prints percent, its own digits: it may round the last one differently.
    value = printed if printed is not None and abs(printed - exact) < 0.05 else exact
    return Cell(value, 100 * interval["low"], 100 * interval["high"])


def warnings_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the reasons why the user's own numbers cannot be compared with each other."""
    warnings = []
    kinds = {(r.values["scorer"], r.values["scored_policy"]) for r in runs}
    if len(kinds) > 1:
        named = "; ".join(f"{scorer} under {policy}" for scorer, policy in sorted(kinds))
        warnings.append(f"Your runs are not all scored alike: {named}.")
    synthetic = sorted({r.benchmark for r in runs if r.values["synthetic"]})
    if synthetic:
        warnings.append(f"Synthetic errors, not people's: {', '.join(synthetic)}.")
    by_set: dict[str, set[str]] = {}
    for run in runs:
        by_set.setdefault(run.benchmark, set()).add(run.values["signature.benchmark"])
    different = sorted(name for name, digests in by_set.items() if len(digests) > 1)
    if different:
        warnings.append(f"Not the same sentences for every system: {', '.join(different)}.")
    return tuple(warnings)


def drawn(runs: Sequence[Run]) -> list[str]:
    """Return the systems that the figures show.

    Those that change nothing are left out, because all their scores are 0; of the others no more
    are drawn than there are colours, those with the highest mean.
    """
    active = {name for run, name in zip(runs, row_names(runs), strict=True) if run.active}
    means = {
        name: fmean(cell.value or 0.0 for cell in cells.values())
        for name, cells in scores_of(runs).items()
        if name in active
    }
    best = sorted(means, key=lambda name: -means[name])[:COLOURS]
    return [name for name in means if name in best]


def figures(runs: Sequence[Run]) -> list[str]:
    """Return a figure for each benchmark: F against the share of clean sentences changed.

    A dot is a run as it was scored; a line is the curve of a system that gives confidences.
    """
    names = drawn(runs)
    dots: dict[str, dict[str, list[tuple[float, float]]]] = {}
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for run, name in zip(runs, row_names(runs), strict=True):
        rate = run.values["breakdown"]["clean"]["over_correction_rate"]
        value = cell_of(run.values).value
        if name not in names or rate is None or value is None:
            continue
        dots.setdefault(run.benchmark, {})[name] = [(100 * rate, value)]
        if "curve" in run.values:
            steps = ((100 * share, 100 * f) for _, f, share in run.values["curve"]["steps"])
            lines.setdefault(run.benchmark, {})[name] = [(0.0, 0.0), *steps]
    across = "error-free sentences changed, %"
    return [
        plot(f"F1 against {across[:-3]}, {of}", across, lines.get(of, {}), systems, names)
        for of, systems in dots.items()
    ]
