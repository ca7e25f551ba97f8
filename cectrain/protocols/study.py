"""A study: variants of one recipe over seeds, and the table and figure that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cecbench.report.figures import Point, bars
from cecdata.common import html, markdown
from cecdata.common.codec import Json
from cecdata.common.errors import UsageError
from cectrain.protocols import tables
from cectrain.protocols.frame import Done, Plan, Run, run_all, write

EXACT = "heldout_exact_after_ppo"
OVER = "heldout_overcorrection_after_ppo"
#: of a run's held-out scores: the column's head → the summary's name
COLUMNS: Mapping[str, str] = {
    "exact": EXACT,
    "over-correction": OVER,
    "before": "heldout_exact_after_sft",
}
AVERAGE = "average"
Figure = Callable[[Sequence["Row"]], str]


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of the table: its label, the settings that make it, and the label's parts."""

    label: str
    settings: tuple[str, ...]
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A variant's results: column → one number a finished seed, as fractions."""

    variant: Variant
    values: Mapping[str, tuple[float, ...]]
    parameters: float | None = None  # of the policy; None where no run is finished

    def mean(self, column: str) -> float | None:
        """Over the seeds; None where nothing is known."""
        found = self.values.get(column, ())
        return float(np.mean(found)) if found else None

    def shown(self, column: str) -> str:
        """Mean and, of several seeds, deviation, in percent."""
        found = self.values.get(column, ())
        if len(found) < 2:
            return tables.percent(self.mean(column))
        return f"{100 * np.mean(found):.1f} ± {100 * np.std(found, ddof=1):.1f}"


@dataclass(frozen=True, slots=True)
class Study:
    """What is compared. `heads` name the parts of a label; `benchmarks` are scored besides."""

    name: str
    title: str
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...] = (42,)
    heads: tuple[str, ...] = ("run",)
    benchmarks: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Runs and rows are found by label: of two equal ones the second would take the first's.
        labels = [variant.label for variant in self.variants]
        if twice := list(dict.fromkeys(one for one in labels if labels.count(one) > 1)):
            raise UsageError(f"{self.name}: {', '.join(twice)} is given twice: name each once")


def short_names(names: Sequence[str]) -> list[str]:
    """The shortest end of each path that no other of them has.

    >>> short_names(["a/model", "b/model", "c/other"])
    ['a/model', 'b/model', 'other']
    """
    parts = [tuple(name.rstrip("/").split("/")) for name in names]

    def short(own: tuple[str, ...]) -> str:
        ends = (n for n in range(1, len(own)) if all(o == own or o[-n:] != own[-n:] for o in parts))
        return "/".join(own[-next(ends, len(own)) :])

    return [short(own) for own in parts]


def run_study(plan: Plan, study: Study, figure: Figure | None = None) -> list[Row]:
    """All variants over all seeds; the report is written anew after each run that ends.

    Raises CecError at the end if a run failed. The same call goes on where it stopped.
    """
    if not study.variants:
        raise UsageError(f"{study.name}: nothing to compare")
    scored: dict[str, dict[str, float]] = {}

    def after(found: dict[str, Done]) -> None:
        for name, done in found.items():
            if name not in scored:
                scored[name] = scores(done, study.benchmarks)
        _write(plan, study, _rows(study, scored, found), figure)

    found = run_all(plan, [run for runs in _runs(study).values() for run in runs], after)
    return _rows(study, scored, found)


def scores(done: Done, benchmarks: Sequence[str]) -> dict[str, float]:
    """What is known of a finished run: held-out rates, and F1 on benchmarks, as fractions."""
    found = {head: done.number(name) for head, name in COLUMNS.items()}
    found |= {name: _benchmark(done, name) for name in benchmarks}
    known = [value for name, value in found.items() if name in benchmarks and value is not None]
    if len(known) > 1:
        found[AVERAGE] = float(np.mean(known))
    return {name: value for name, value in found.items() if value is not None}


def _benchmark(done: Done, name: str) -> float | None:
    """The headline score of cecbench, as `cecbench run` gives it; kept beside the run."""
    from cecbench.evaluate import Settings, evaluate

    out = done.folder.with_name(f"{done.run.name}.bench") / name.replace("/", "-")
    values = evaluate(
        Settings(benchmark=name, system=f"policy:{done.folder}", out=out)
    )
    score = values.get(str(values["headline"]))
    return float(score) / 100 if isinstance(score, (int, float)) else None


def _runs(study: Study) -> dict[str, list[Run]]:
    """Label → its runs, one a seed."""
    return {
        variant.label: [
            Run(f"{_plain(variant.label)}-{seed}", (*variant.settings, f"seed={seed}"))
            for seed in study.seeds
        ]
        for variant in study.variants
    }


def _rows(
    study: Study, scored: Mapping[str, Mapping[str, float]], done: Mapping[str, Done]
) -> list[Row]:
    runs, rows = _runs(study), []
    for variant in study.variants:
        found = [scored[run.name] for run in runs[variant.label] if run.name in scored]
        names = dict.fromkeys(name for one in found for name in one)
        values = {name: tuple(one[name] for one in found if name in one) for name in names}
        known = (done[run.name].number("parameters") for run in runs[variant.label]
                 if run.name in done)  # fmt: skip
        rows.append(Row(variant, values, next(known, None)))
    return rows


def _write(plan: Plan, study: Study, rows: Sequence[Row], figure: Figure | None) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row.values))
    head = [*study.heads, *(f"{name} %" for name in columns)]
    cells = [
        [*(row.variant.cells or (row.variant.label,)), *(row.shown(name) for name in columns)]
        for row in rows
    ]
    missing = [row.variant.label for row in rows if not row.values]
    words = list(study.words)
    if missing:
        words.append(f"Not finished: {', '.join(missing)}.")
    facts: dict[str, Json] = {
        "study": study.name,
        "seeds": list(study.seeds),
        "rows": [
            {"label": row.variant.label, "settings": list(row.variant.settings),
             "values": {name: list(found) for name, found in row.values.items()}}
            for row in rows
        ],
    }  # fmt: skip
    finished = [row for row in rows if row.values]
    drawn = [(figure or bars_of)(finished)] if finished else []
    text = f"# {study.title}\n\n" + "\n\n".join([*words, markdown.table(head, cells)]) + "\n"
    page = tables.page(study.title, words, [*drawn, html.table(head, cells)])
    write(plan, study.name, facts, text, page)


def bars_of(rows: Sequence[Row]) -> str:
    """The held-out rates of each variant beside each other."""
    labels = [row.variant.label for row in rows]
    series = {
        name: {row.variant.label: point_of(row, name) for row in rows if name in row.values}
        for name in ("exact", "over-correction", AVERAGE)
    }
    return bars("Held-out sentences, %", labels, {n: p for n, p in series.items() if p})


def point_of(row: Row, column: str) -> Point:
    """A point in percent, one deviation over seeds as its whisker."""
    found = row.values[column]
    mean = 100 * float(np.mean(found))
    if len(found) < 2:
        return Point(mean)
    spread = 100 * float(np.std(found, ddof=1))
    return Point(mean, mean - spread, mean + spread, "± 1 deviation over seeds")


def _plain(label: str) -> str:
    """A label as a folder's name.

    >>> _plain("τ 0.6, β 0.7")
    'τ-0.6-β-0.7'
    """
    kept = "".join(c if c.isalnum() or c in ".=+-" else " " for c in label)
    return "-".join(kept.split())
