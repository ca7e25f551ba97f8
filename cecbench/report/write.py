"""The files of a report: the page, and the numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cecbench import published
from cecbench.report.overview import (
    Cell,
    Overview,
    overview,
)
from cecbench.report.page import Case, cases, page
from cecbench.results import SCORE, Run, read_run
from cecdata.common.durable import Workspace
from cecdata.common.errors import InputError


def as_json(view: Overview, runs: Sequence[Run]) -> str:
    """Return the table and each run's whole score."""
    record = {
        "columns": list(view.columns),
        "rows": [
            {
                "system": line.name,
                "group": line.group,
                "remark": line.remark,
                "over_correction_rate": line.over_correction,
                "scores": {name: _json_cell(cell) for name, cell in line.cells.items()},
            }
            for line in view.lines
        ],
        "signatures": dict(view.signatures),
        "warnings": list(view.warnings),
        "runs": [dict(run.values) for run in runs],
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def _json_cell(cell: Cell) -> dict[str, object]:
    return {"f1_percent": cell.value, "low": cell.low, "high": cell.high, "remark": cell.remark}


FILES = ("index.html", "report.json")
MOST_CASES = 1000  # per run, on the page


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs at or below the paths, in the order of the paper's columns.

    Raise InputError if there are none.
    """
    folders: list[Path] = []
    for path in paths:
        if path.name == SCORE:
            folders.append(path.parent)
        elif path.is_dir():
            folders += sorted(file.parent for file in path.rglob(SCORE))
        else:
            raise InputError(f"{path}: no such run; name folders that `cecbench run` wrote")
    if not folders:
        named = ", ".join(str(path) for path in paths)
        raise InputError(f"no {SCORE} in {named}: run `cecbench run --out FOLDER` first")
    order = {name: place for place, name in enumerate(published.BENCHMARK_OF_SET.values())}
    runs = _with_distinct_names([read_run(folder) for folder in dict.fromkeys(folders)])
    return sorted(runs, key=lambda run: (order.get(run.benchmark, len(order)), run.benchmark))


def _with_distinct_names(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with benchmarks called name@sha256 where one name has different sentences.

    A published benchmark keeps its name, because that is its column in the report, which warns if
    the sentences differ.
    """
    digests: dict[str, set[str]] = {}
    for run in runs:
        digests.setdefault(run.benchmark, set()).add(run.values["signature.benchmark"])
    ambiguous = {name for name, kinds in digests.items() if len(kinds) > 1}
    ambiguous -= set(published.BENCHMARK_OF_SET.values())
    return [
        replace(run, values={**run.values, "benchmark": run.values["signature.benchmark"]})
        if run.benchmark in ambiguous
        else run
        for run in runs
    ]


def write_report(runs: Sequence[Run], out: Path) -> tuple[Path, ...]:
    """Write the report's files to `out`, replacing an earlier report, and return their paths."""
    view = overview(runs)
    shown: list[Case] = []
    left_out = 0
    for run in runs:
        if run.changes_nothing:  # misses every error, and would fill the list before the others
            continue
        listed, total = cases(run, MOST_CASES)
        shown += listed
        left_out += total - len(listed)
    texts = (
        page(view, runs, shown, left_out),
        as_json(view, runs),
    )
    with Workspace(out, {"kind": "report"}) as work:
        for name, text in zip(FILES, texts, strict=True):
            work.write_text(name, text)
    return tuple(out / name for name in FILES)
