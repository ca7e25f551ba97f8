"""A report of runs: one page in HTML."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from cecbench.metrics.rows import Row
from cecbench.results import Run, RunScore
from cecbench.sums import CATEGORIES
from cecbench.systems.base import STATUSES
from cecdata.common import html
from cecdata.common.durable import Workspace
from cecdata.common.html import Html, format_percent, make_details, write_table
from cecdata.hanzi import errortypes

FILE = "index.html"
MOST_SENTENCES = 200  # misjudged ones of a run, on the page
TITLE = "Chinese spelling correction: results"


def write_report(runs: Sequence[Run], out: Path) -> Path:
    """Write the page to `out`, replacing an earlier report, and return its path."""
    with Workspace(out, {"kind": "report"}) as work:
        work.write_text(FILE, make_page(runs))
    return out / FILE


def make_page(runs: Sequence[Run]) -> str:
    """Return the whole page."""
    parts = (_make_head, _make_scores, _make_behaviour, _make_categories, _list_misjudged)
    return html.write_page(TITLE, "\n".join(part(runs) for part in parts), chinese=True)


def _make_head(runs: Sequence[Run]) -> str:
    warnings = "".join(f'<p class="warning">{escape(text)}</p>' for text in find_warnings(runs))
    return (
        f"<header><h1>{TITLE}</h1><p>Scores are sentence-level F1 in percent unless a name says "
        "otherwise; the range under a score is its 95 % bootstrap interval over sentences. "
        "<code>cecbench compare</code> tests the differences, and prints a table for a paper."
        f"</p>{warnings}</header>"
    )


def _make_scores(runs: Sequence[Run]) -> str:
    benchmarks = list(dict.fromkeys(run.benchmark for run in runs))
    rows = [
        [system, *(_make_score_cell(cells.get(benchmark)) for benchmark in benchmarks)]
        for system, cells in group_scores_by_system(runs).items()
    ]
    return f"<section><h2>Scores</h2>{write_table(['system', *benchmarks], rows)}</section>"


def _make_score_cell(cell: Cell | None) -> Html:
    if cell is None or cell.value is None:
        return Html("" if cell is None else "–")
    ends = "" if cell.low is None else f"<small>{cell.low:.1f}–{cell.high:.1f}</small>"
    return Html(f"{cell.value:.2f}{ends}")


def _make_behaviour(runs: Sequence[Run]) -> str:
    present = [name for name in STATUSES if any(name in run.values["answers"] for run in runs)]
    heads = ["system", "benchmark", "rows scored", "clean changed"]
    heads += ["other length", "copied", "sentences/s"]
    rows = [
        [
            name,
            run.benchmark + (" (synthetic)" if run.values["synthetic"] else ""),
            f"{run.values['rows_scored']} of {run.values['rows_read']}",
            _make_clean_cell(run),
            format_percent(run.values.get("behaviour.length_violation_rate"), unit=" %"),
            format_percent(run.values.get("behaviour.copy_rate"), unit=" %"),
            run.values["usage"].get("sentences_per_s", "–"),
            *(run.values["answers"].get(status, 0) for status in present),
        ]
        for run, name in name_runs(runs)
    ]
    meanings = "".join(f"<li><b>{name}</b>: {escape(STATUSES[name])}</li>" for name in present)
    signatures = [[name, run.benchmark, run.values["signature"]] for run, name in name_runs(runs)]
    signed = write_table(["system", "benchmark", "signature"], signatures, words=(2,))
    return (
        f"<section><h2>What each run did</h2>{write_table([*heads, *present], rows)}"
        f"{make_details('Meaning of the answers’ statuses', f'<ul>{meanings}</ul>')}"
        f"{make_details('Signatures: what each number means', signed)}</section>"
    )


def _make_clean_cell(run: Run) -> Html:
    clean = run.values["breakdown"]["clean"]
    share = format_percent(clean["over_correction_rate"], unit=" %")
    return Html(f"{share}<small>{clean['changed']} of {clean['sentences']}</small>")


def _make_categories(runs: Sequence[Run]) -> str:
    """Return the section with F by category; a column for each run that changed something."""
    shown = [(run, name) for run, name in name_runs(runs) if run.active]
    heads = ["category", *(Html(f"{escape(n)}, {escape(r.benchmark)}") for r, n in shown)]
    rows: list[list[object]] = []
    for kind in CATEGORIES:
        parts = [run.values["breakdown"]["category"].get(kind) for run, _ in shown]
        if any(parts):
            rows.append([kind, *map(_make_category_cell, parts)])
    meanings = write_table(["category", "meaning"], list(errortypes.MEANING.items()), words=(0, 1))
    return (
        "<section><h2>By category</h2><p>Each part’s F1 comes from the pooled counts of its own "
        f"sentences.</p>{write_table(heads, rows) if rows else ''}"
        f"{make_details('What the categories mean', meanings)}</section>"
    )


def _make_category_cell(part: dict[str, float] | None) -> Html:
    if part is None or part["f"] is None:
        return Html("–")
    low, high = format_percent(part["low"], 1), format_percent(part["high"], 1)
    return Html(f"{format_percent(part['f'])}<small>{low}–{high}, n = {part['sentences']}</small>")


def judge_row(row: Row) -> str | None:
    """Return what is wrong with a prediction; None if it equals the reference."""
    if row.prediction == row.target:
        return None
    if row.source == row.target:
        return "over-corrected"
    return "missed" if row.prediction == row.source else "wrong"


def _list_misjudged(runs: Sequence[Run]) -> str:
    """Return the section with the misjudged sentences of the runs that changed something."""
    heads = ["id", "judgement", "category", "source", "prediction", "reference"]
    parts = []
    for run, name in name_runs(runs):
        wrong = [(row, said) for row in run.rows if (said := judge_row(row))] if run.active else []
        rows = []
        for row, said in wrong[:MOST_SENTENCES]:
            kind = errortypes.name_sentence_type(row.source, row.target)
            rows.append([row.id, said, kind, row.source, row.prediction, row.target])
        if rows:
            title = f"{name}, {run.benchmark}: {len(rows)} of {len(wrong)}"
            parts.append(make_details(title, write_table(heads, rows, words=(3, 4, 5))))
    return (
        "<section><h2>Misjudged sentences</h2><p>Missed: an error was not changed. Wrong: a "
        "sentence with errors was changed, but not into the reference. Over-corrected: a clean "
        "sentence was changed. All sentences of a run are in its predictions.jsonl.</p>"
        f"{''.join(parts)}</section>"
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """A score in percent, and its interval if there is one."""

    value: float | None
    low: float | None = None
    high: float | None = None


def group_scores_by_system(runs: Sequence[Run]) -> dict[str, dict[str, Cell]]:
    """Return the headlines of each system by benchmark."""
    scores: dict[str, dict[str, Cell]] = {}
    for run, name in name_runs(runs):
        scores.setdefault(name, {})[run.benchmark] = write_headline_cell(run.values)
    return scores


def name_runs(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """Return each run and the name of its system, with the scoring where it is not the default.

    Runs of one name on one benchmark get their folders behind it, below the one that all share.
    """
    folders = [Path(run.folder).absolute() for run in runs]
    names = [name_of(run) for run in runs]
    times = Counter((run.benchmark, name) for run, name in zip(runs, names, strict=True))
    ambiguous = {name for (_, name), count in times.items() if count > 1}
    for place, folder in enumerate(folders):
        if names[place] in ambiguous:
            names[place] += f" [{folder.relative_to(os.path.commonpath(folders))}]"
    return list(zip(runs, names, strict=True))


def name_of(run: Run) -> str:
    """Return the system's name, with the scoring where it is not the default."""
    scoring = (run.values["scorer"], run.values["unequal_length"])
    return run.system if scoring == ("cscd", "revert") else f"{run.system} ({', '.join(scoring)})"


def write_headline_cell(values: RunScore) -> Cell:
    """Return the headline in percent, whatever the scorer's own unit, with its interval."""
    stated, interval = values.get(values["headline"]), values.get("interval")
    printed = None if stated is None else float(stated)  # ChERRANT and Paddle print texts
    if not interval:
        return Cell(printed)
    exact = 100 * interval["value"]
    # If the script prints percent, its own digits: it may round the last one differently.
    value = printed if printed is not None and abs(printed - exact) < 0.05 else exact
    return Cell(value, 100 * interval["low"], 100 * interval["high"])


def find_warnings(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the reasons why the user's own numbers cannot be compared with each other."""
    warnings = []
    kinds = {(r.values["scorer"], r.values["scored_unequal_length"]) for r in runs}
    if len(kinds) > 1:
        named = "; ".join(f"{scorer}, {lengths}" for scorer, lengths in sorted(kinds))
        warnings.append(f"Your runs were scored in different ways: {named}.")
    synthetic = sorted({r.benchmark for r in runs if r.values["synthetic"]})
    if synthetic:
        warnings.append(f"Synthetic errors, not people's, are in: {', '.join(synthetic)}.")
    by_set: dict[str, set[str]] = {}
    for run in runs:
        by_set.setdefault(run.benchmark, set()).add(run.values["signature.benchmark"])
    different = sorted(name for name, digests in by_set.items() if len(digests) > 1)
    if different:
        warnings.append(f"Systems were scored on different rows of: {', '.join(different)}.")
    return tuple(warnings)
