"""Studies: lists of variants of one recipe in TOML, run over seeds and compared in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from cecdata.common.codec import Json
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.settings import read_recipe, settings_from_tree
from cectrain import config
from experiments.report import Table, percent, write_report
from experiments.training.comparison import (
    F1,
    MEASURES,
    Difference,
    change,
    rate_interval,
    side_counts,
)
from experiments.training.runs import Experiment, FinishedRun, Run, run_all

#: columns of the table, unless a study has its own: head → name in summary.json
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "exact": "heldout_exact_after_ppo",
        "over-correction": "heldout_overcorrection_after_ppo",
        F1: "heldout_after_ppo.heldout_f1",
        "before": "heldout_exact_after_sft",
    }
)
AVERAGE = "average"
_INTERVALS = (
    "In parentheses: 95 % intervals over draws of held-out sentences, with all their copies, and "
    "of seeds."
)
_CHANGES = "change by PPO, points"  # head of the second table's column of variants
_FOLDER = Path(__file__).with_name("studies")


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of a table: settings as for --set, and the number that the paper prints for it.

    `cells` fill the first columns of the line; without them the name does. `recipe` replaces that
    of --recipe.
    """

    name: str
    settings: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    recipe: str = ""
    published: float | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A study, with the fields of its TOML file.

    `settings` hold for all variants, and --set overrides them. `published` is the head of the
    column with the paper's numbers. `notes` are printed above the table.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    heads: tuple[str, ...] = ("variant",)
    settings: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    seeds: tuple[int, ...] = (42,)
    benchmarks: tuple[str, ...] = ()
    published: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.variants:
            raise UsageError(f"{self.name}: a study needs at least one variant")
        names = [variant.name for variant in self.variants]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError(f"{self.name}: two variants are named {', '.join(twice)}")
        if any(len(v.cells) not in (0, len(self.heads)) for v in self.variants):
            raise UsageError(f"{self.name}: `cells` of a variant must match the study's `heads`")


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a variant: for each column one fraction for every finished seed."""

    variant: Variant
    values: Mapping[str, tuple[float, ...]]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %
    changes: Mapping[str, Difference] = field(default_factory=dict)  # by PPO, of each measure

    def shown(self, column: str) -> str:
        """Return the mean in percent with its interval, or the deviation of several seeds."""
        values = self.values.get(column, ())
        if column in self.intervals:
            low, high = self.intervals[column]
            return f"{100 * np.mean(values):.1f} ({100 * low:.1f}–{100 * high:.1f})"
        if len(values) < 2:
            return percent(values[0] if values else None)
        return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"


def shipped() -> list[str]:
    """Return the names of the studies in studies/."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load(name: str, seeds: Sequence[int] = (), benchmarks: Sequence[str] = ()) -> Study:
    """Return a study of studies/ by its name, or that of a TOML file.

    `seeds` replace those of the file, `benchmarks` are added. Raises UsageError for an unknown
    name or key or a wrong value, InputError for a file that cannot be read.

    >>> load("ablation").variants[0].published
    63.66
    """
    known = shipped()
    if name not in known and not name.endswith(".toml"):
        raise UsageError(f"no study {name!r}; {did_you_mean(name, known)}, or a path to a .toml")
    path = _FOLDER / f"{name}.toml" if name in known else name
    tree = read_recipe(str(path), "cectrain", ())
    study = settings_from_tree(Study, {**tree, "name": Path(name).stem}, name)
    return replace(
        study,
        seeds=tuple(seeds) or study.seeds,
        benchmarks=tuple(dict.fromkeys((*study.benchmarks, *benchmarks))),
    )


def run_study(experiment: Experiment, study: Study) -> list[Row]:
    """Run all variants over all seeds; write the report again after each run that finishes.

    Raises UsageError for a setting that does not load, before anything runs, and CecError at the
    end if a run has failed. The same call continues where it stopped.
    """
    experiment = replace(experiment, settings=(*study.settings, *experiment.settings))
    for variant in study.variants:
        recipe = variant.recipe or experiment.recipe
        config.load(recipe, [*experiment.settings, *variant.settings])
    scored: dict[str, dict[str, float]] = {}

    def on_finish(runs: dict[str, FinishedRun]) -> None:
        for name, run in runs.items():
            if name not in scored:
                scored[name] = scores(run, study.columns, study.benchmarks)
        _report(experiment, study, _rows(study, scored, runs))

    runs = run_all(experiment, [run for some in _runs(study).values() for run in some], on_finish)
    return _rows(study, scored, runs)


def scores(
    run: FinishedRun, columns: Mapping[str, str] = COLUMNS, benchmarks: Sequence[str] = ()
) -> dict[str, float]:
    """Return numbers of the summary and F1 on benchmarks, as fractions; missing ones are left out.

    Several benchmarks are averaged.
    """
    values = {head: run.number(name) for head, name in columns.items()}
    on_benchmarks = {name: _benchmark(run, name) for name in benchmarks}
    known = [value for value in on_benchmarks.values() if value is not None]
    if len(known) > 1:
        on_benchmarks[AVERAGE] = float(np.mean(known))
    return {n: v for n, v in {**values, **on_benchmarks}.items() if v is not None}


def _benchmark(run: FinishedRun, name: str) -> float | None:
    """Return the headline score of `cecbench run`, whose results are kept beside the run."""
    from cecbench.run import Settings, evaluate

    out = run.folder.with_name(f"{run.run.name}.bench") / name.replace("/", "-")
    values = evaluate(Settings(benchmark=name, system=f"policy:{run.folder}", out=out))
    score = values.get(str(values["headline"]))
    return float(score) / 100 if isinstance(score, (int, float)) else None


def _runs(study: Study) -> dict[str, list[Run]]:
    """Return the runs of each variant by its name, one for each seed."""
    return {
        variant.name: [
            Run(
                f"{_folder_name(variant.name)}-{seed}",
                (*variant.settings, f"seed={seed}"),
                recipe=variant.recipe,
            )
            for seed in study.seeds
        ]
        for variant in study.variants
    }


def _rows(
    study: Study, scored: Mapping[str, Mapping[str, float]], done: Mapping[str, FinishedRun]
) -> list[Row]:
    rows = []
    for variant, runs in zip(study.variants, _runs(study).values(), strict=True):
        by_seed = [scored[run.name] for run in runs if run.name in scored]
        names = dict.fromkeys(name for one in by_seed for name in one)
        values = {name: tuple(one[name] for one in by_seed if name in one) for name in names}
        own = [done[run.name] for run in runs if run.name in done]
        same = [name for name in names if study.columns.get(name) == COLUMNS.get(name, "")]
        measures = [name for name in same if name in MEASURES]
        by_ppo = {name: change(own, name) for name in measures}
        changes = {name: value for name, value in by_ppo.items() if value is not None}
        rows.append(Row(variant, values, _intervals(own, measures), changes))
    return rows


def _intervals(
    runs: Sequence[FinishedRun], measures: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Return the intervals of a variant's measures over held-out sentences and seeds."""
    intervals = {}
    for measure in measures:
        clusters, tops, bottoms = side_counts(runs, measure)
        if clusters:
            intervals[measure] = rate_interval(tops, bottoms, clusters)
    return intervals


def _report(experiment: Experiment, study: Study, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row.values))
    head = [*study.heads, *(f"{name} %" for name in columns)]
    cells = [
        [*(row.variant.cells or (row.variant.name,)), *(row.shown(name) for name in columns)]
        for row in rows
    ]
    if study.published:
        head.append(study.published)
        for line, row in zip(cells, rows, strict=True):
            line.append("–" if row.variant.published is None else f"{row.variant.published:.2f}")
    notes = [*study.notes, *([_INTERVALS] if any(row.intervals for row in rows) else [])]
    if missing := [row.variant.name for row in rows if not row.values]:
        notes.append(f"Not finished: {', '.join(missing)}.")
    facts: dict[str, Json] = {
        "study": study.name,
        "seeds": list(study.seeds),
        "settings": list(experiment.settings),
        "rows": [
            {
                "name": row.variant.name,
                "recipe": row.variant.recipe or experiment.recipe,
                "settings": list(row.variant.settings),
                "values": {name: list(values) for name, values in row.values.items()},
                "intervals": {name: list(pair) for name, pair in row.intervals.items()},
                "changes": {name: asdict(value) for name, value in row.changes.items()},
                "published": row.variant.published,
            }
            for row in rows
        ],
    }
    base = experiment.out / study.name
    write_report(base, study.title, notes, [(head, cells), *_changes(rows)], facts)


def _changes(rows: Sequence[Row]) -> list[Table]:
    """Return a table of the paired differences between the policy after and before PPO."""
    names = list(dict.fromkeys(name for row in rows for name in row.changes))
    if not names:
        return []
    cells = [
        [row.variant.name]
        + [
            f"{100 * one.value:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
            for one in map(row.changes.__getitem__, names)
        ]
        for row in rows
        if row.changes
    ]
    return [([_CHANGES, *names], cells)]


def _folder_name(name: str) -> str:
    """Return a variant's name without signs that a folder's name should not have.

    >>> _folder_name("τ 0.6, β 0.7")
    'τ-0.6-β-0.7'
    """
    kept = "".join(c if c.isalnum() or c in ".=+-" else " " for c in name)
    return "-".join(kept.split())
