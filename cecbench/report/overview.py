"""Numbers in words and columns, and the table of systems and benchmarks that all forms show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cecbench import published
from cecbench.report.plot import COLOURS, plot
from cecbench.results import Run, RunScore, headline_of
from cecbench.systems.base import STATUSES
from cecdata.common.html import percent


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
    if "detectable" in (interval := values.get("interval", {})):
        least = percent(interval["detectable"])
        yield f"  two systems that err independently: these rows show {least} points of difference"
    if set(values["answers"]) != {"ok"}:
        for status, count in values["answers"].items():
            yield f"  {count:>6} × {status}: {STATUSES.get(status, 'a status of another version')}"
    if values["unanswered"]:
        means = values["unanswered_means"]
        yield f"  {values['unanswered']} without a readable answer: {means}"
    for what, count in values["retried"].items():
        yield f"  {count:>6} × {what}: the request was sent again, or given up"
    if values["traditional_predictions"]:
        yield f"  {values['traditional_predictions']} predictions bring in traditional characters"
    parts = values["breakdown"]
    clean = parts["clean"]
    if clean["sentences"]:
        counts = f"{clean['changed']} of {clean['sentences']}"
        rate = percent(clean["over_correction_rate"], unit=" %")
        yield f"  clean sentences changed: {counts} ({rate})"
    if "curve" in values:
        yield from _curve(values["curve"])
    yield from _table("by category", parts["category"])
    yield from _table("by number of errors", parts["errors"])


def _curve(curve: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"  best F while at most so many clean sentences are changed, mean up to "
        f"{curve['reach']:.0%}: {percent(curve['area'])}"
    )
    for point in curve["points"]:
        least = point["threshold"]
        how = "no edit" if least is None else f"confidence ≥ {least:.3f}"
        yield f"    at most {point['changed_at_most']:>5.1%}: {percent(point['f']):>6}  ({how})"


def _table(title: str, parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not parts:
        return
    yield f"  {title:<30} {'n':>6} {'P':>7} {'R':>7} {'F':>7}"
    for name, part in parts.items():
        numbers = " ".join(f"{percent(rate):>7}" for rate in (part["p"], part["r"], part["f"]))
        yield f"    {name:<28} {part['sentences']:>6} {numbers}"


YOURS = "your runs"
_COLUMN_OF = {benchmark: name for name, benchmark in published.BENCHMARK_OF_SET.items()}


@dataclass(frozen=True, slots=True)
class Cell:
    """A score in percent, its interval if there is one, and a remark."""

    value: float | None
    low: float | None = None
    high: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One system: its cells by column, and the clean sentences of all its runs, changed and all."""

    name: str
    group: str
    cells: Mapping[str, Cell]
    remark: str = ""
    clean_changed: int = 0
    clean: int = 0
    active: bool = True  # whether it changed a sentence

    @property
    def yours(self) -> bool:
        """Whether this is a system of the user's."""
        return self.group == YOURS

    @property
    def over_correction(self) -> float | None:
        """Fraction of the clean sentences that the system changed; None without clean ones."""
        return self.clean_changed / self.clean if self.clean else None


@dataclass(frozen=True, slots=True)
class Overview:
    """The lines and columns of the table, and warnings."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...] = ()


def overview(runs: Sequence[Run]) -> Overview:
    """Return the table: the runs first, then the published rows."""
    own: dict[str, list[Run]] = {}
    for run, name in zip(runs, row_names(runs), strict=True):
        own.setdefault(name, []).append(run)
    others = dict.fromkeys(_column(run) for run in runs)
    return Overview(
        columns=(*(c for c in others if c not in published.SETS), *published.SETS, "avg"),
        lines=(*(_own_line(name, its_runs) for name, its_runs in own.items()), *_published_lines()),
        warnings=_warnings(runs),
    )


def _column(run: Run) -> str:
    return _COLUMN_OF.get(run.benchmark, run.benchmark)


def _own_line(name: str, runs: Sequence[Run]) -> Line:
    cells = {_column(run): cell_of(run.values) for run in runs}
    _add_average(cells)
    clean = [run.values["breakdown"]["clean"] for run in runs]
    return Line(
        name,
        YOURS,
        cells,
        clean_changed=sum(counts["changed"] for counts in clean),
        clean=sum(counts["sentences"] for counts in clean),
        active=any(run.active for run in runs),
    )


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
    remark = "the published script prints nothing here" if printed is None else ""
    if values["rows_read"] != values["benchmark_rows"]:
        remark = f"{values['rows_read']} of {values['benchmark_rows']} rows"
    return Cell(value, 100 * interval["low"], 100 * interval["high"], remark)


def _add_average(cells: dict[str, Cell]) -> None:
    values = [cells[name].value for name in published.SETS if name in cells]
    known = [value for value in values if value is not None]
    if len(known) == len(published.SETS):
        cells["avg"] = Cell(sum(known) / len(known))


def _published_lines() -> list[Line]:
    source = published.table("main")
    said = {row: text for row, column, text in published.remarks("main") if column == "*"}
    lines = []
    for row in source.rows:
        cells = {name: Cell(source.number(row, name)) for name in (*published.SETS, "avg")}
        mean = published.recomputed_average(source, row)
        if mean is not None:
            cells["avg"] = Cell(
                cells["avg"].value, remark=f"printed; the mean of the nine sets is {mean:.2f}"
            )
        lines.append(Line(row[0], row[1], cells, said.get(row[0], "")))
    return lines


def _warnings(runs: Sequence[Run]) -> tuple[str, ...]:
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


def drawn(view: Overview) -> list[str]:
    """Return the systems that the figures show.

    Those that change nothing are left out, because all their scores are 0; of the others no more
    are drawn than there are colours, those with the highest mean.
    """
    means = {
        line.name: fmean(cell.value or 0.0 for cell in line.cells.values())
        for line in view.lines
        if line.yours and line.active
    }
    best = sorted(means, key=lambda name: -means[name])[:COLOURS]
    return [name for name in means if name in best]


def figures(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Return a figure for each benchmark: F against the share of clean sentences changed.

    A dot is a run as it was scored; a line is the curve of a system that gives confidences.
    """
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
