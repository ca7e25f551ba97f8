"""The HTML page of a report: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from cecbench import published
from cecbench.report import plots
from cecbench.report.cases import JUDGEMENTS, Case
from cecbench.report.figures import COLOURS
from cecbench.report.overview import OVER_CORRECTION, Cell, Line, Overview
from cecbench.report.run_tables import cross_tables, frequency_table, meanings, runs_section
from cecbench.results import Run
from cecdata.common import html
from cecdata.common.html import folded, percent

#: published tables that are shown as tables
TABLES = {
    "cost": "Training cost and throughput",
    "thresholds": "Threshold sweep",
    "encoders": "Choice of the sentence encoder",
}
FILTERS = ("benchmark", "system", "judgement", "category", "status")


def page(view: Overview, runs: Sequence[Run], cases: Sequence[Case], left_out: int) -> str:
    """Return the whole page; `left_out` misjudged sentences are not among the `cases`."""
    sections = (
        _head(view, runs),
        _scores(view),
        _your_figures(view, runs),
        runs_section(runs),
        _cases(view, cases, left_out),
        _published_tables(),
    )
    title = "Chinese spelling correction: results"
    data = [asdict(case) for case in cases] or None
    return html.page(title, "\n".join(sections), Path(__file__).parent, data)


def _head(view: Overview, runs: Sequence[Run]) -> str:
    warnings = "".join(f'<p class="warning">{escape(text)}</p>' for text in view.warnings)
    systems = len({run.system for run in runs})
    sets = len({run.benchmark for run in runs})
    benchmarks = "1 benchmark" if sets == 1 else f"{sets} benchmarks"
    return (
        "<header><h1>Chinese spelling correction: results</h1>"
        f"<p>{systems} of your systems on {benchmarks}, beside the rows that the CEC-Zero "
        "paper prints. Scores are sentence-level F1 in percent unless a name says otherwise; the "
        "range under a score is its 95 % bootstrap interval over sentences.</p>"
        '<nav><a href="#scores">Scores</a><a href="#parts">By category and number of errors</a>'
        '<a href="#runs">What each run did</a><a href="#sentences">Misjudged sentences</a>'
        f'<a href="#paper">The paper’s tables</a></nav>{warnings}</header>'
    )


def _scores(view: Overview) -> str:
    notes: list[str] = []
    columns = (OVER_CORRECTION, *view.columns)
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    rows, group = [], ""
    for line in view.lines:
        if line.group != group:
            group = line.group
            blank = f'<td colspan="{len(columns)}"></td>'
            rows.append(f'<tr class="group"><td>{escape(group)}</td>{blank}</tr>')
        name = f"<td>{escape(line.name)}{_note(line.remark, notes)}</td>{_over_correction(line)}"
        cells = "".join(_cell(line.cells.get(column), notes) for column in view.columns)
        kind = ' class="yours"' if line.yours else ""
        rows.append(f"<tr{kind}>{name}{cells}</tr>")
    listed = "".join(f"<li>{escape(text)}</li>" for text in notes)
    return (
        '<section id="scores"><h2>Scores</h2><div class="scroll" tabindex="0"><table><thead><tr>'
        "<th>system</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f'<ol class="notes">{listed}</ol><p class="soft">The second column counts the sentences '
        "without an error that a system changed, over all benchmarks together: over-correction, "
        "which the paper does not print. Published rows: CEC-Zero, arXiv 2512.23971, tab:main; the "
        "paper names the CSCD-NS script as its metric. CSCD stands for the test split of CSCD-NS; "
        "CS is the authors’ private set.</p></section>"
    )


def _over_correction(line: Line) -> str:
    if line.over_correction is None:
        return f'<td class="soft">{"–" if line.yours else ""}</td>'
    share = percent(line.over_correction)
    return f"<td>{share}<small>{line.clean_changed} of {line.clean}</small></td>"


def _cell(cell: Cell | None, notes: list[str]) -> str:
    if cell is None:
        return '<td class="soft"></td>'
    text = "–" if cell.value is None else f"{cell.value:.2f}"
    text += _note(cell.remark, notes)
    if cell.low is not None and cell.high is not None:
        text += f"<small>{cell.low:.1f}–{cell.high:.1f}</small>"
    return f"<td>{text}</td>"


def _note(text: str, notes: list[str]) -> str:
    if not text:
        return ""
    if text not in notes:
        notes.append(text)
    return f"<sup>{notes.index(text) + 1}</sup>"


def _your_figures(view: Overview, runs: Sequence[Run]) -> str:
    names = plots.drawn(view)
    by_benchmark = plots.by_category_and_number(runs, names)
    figures = "".join(
        folded(benchmark, f'<div class="figures">{"".join(drawings)}</div>')
        for benchmark, drawings in by_benchmark.items()
    )
    return (
        '<section id="parts"><h2>By category and number of errors</h2>'
        "<p>Each part’s F1 comes from the pooled counts of its own sentences; clean sentences are "
        f"counted apart. Whiskers are 95 % intervals; hover for the numbers.{_not_drawn(view)}</p>"
        f"{plots.scores_with_intervals(view, names)}{figures}"
        f"{folded('What the categories mean', meanings())}"
        f"{folded('By frequency of the rarest right character', frequency_table(runs))}"
        f"{folded('What the order of the categories decided', cross_tables(runs))}</section>"
    )


def _not_drawn(view: Overview) -> str:
    """Return a sentence on the systems that the figures leave out, or the empty string."""
    active = sum(line.yours and not line.changes_nothing for line in view.lines)
    if active <= COLOURS:
        return _without_idle(view, "drawn")
    best = f" Of {active} systems the {COLOURS} with the highest mean are drawn."
    return _without_idle(view, "drawn") + best


def _without_idle(view: Overview, done: str) -> str:
    idle = [line.name for line in view.lines if line.changes_nothing]
    return f" Not {done}, because nothing was changed: {escape(', '.join(idle))}." if idle else ""


def _cases(view: Overview, cases: Sequence[Case], left_out: int) -> str:
    unlisted = _without_idle(view, "listed")
    if not cases:
        return (
            '<section id="sentences"><h2>Misjudged sentences</h2>'
            f"<p>No changed sentence was misjudged.{unlisted}</p></section>"
        )
    selects = "".join(
        f'<label>{name}<select id="filter-{name}"></select></label>' for name in FILTERS
    )
    more = f" The runs’ predictions.jsonl hold {left_out} more." if left_out else ""
    kinds = "; ".join(f"<b>{name}</b>: {text}" for name, text in JUDGEMENTS.items())
    legend = (
        '<span class="aligned example"><span class="stack"><span class="src">source</span>'
        '<span class="prd bad">prediction</span><span class="ref">reference</span></span></span>'
    )
    return (
        '<section id="sentences"><h2>Misjudged sentences</h2>'
        f"<p>{kinds}.{unlisted}</p><p>Where the three texts differ they are shown one above the "
        f"other: {legend} A red prediction is wrong, a green one right, ∅ is nothing.{more}</p>"
        f'<div class="filters">{selects}<label>holds the text'
        '<input id="filter-text" type="search"></label><span id="case-count" class="soft"></span>'
        '</div><div id="cases"></div><p><button id="case-more">Show more</button></p></section>'
    )


def _published_tables() -> str:
    remarks = html.table(
        ("table", "row", "column", "remark"),
        (
            (name, row, column, text)
            for name in published.NAMES
            for row, column, text in published.remarks(name)
        ),
        words=range(4),
    )
    return (
        '<section id="paper"><h2>The paper’s tables</h2>'
        '<p class="soft">arXiv 2512.23971; no intervals are printed there.</p>'
        f"{''.join(_plain_table(name, title) for name, title in TABLES.items())}"
        f"{folded('Remarks on printed numbers', remarks)}</section>"
    )


def _plain_table(name: str, title: str) -> str:
    source = published.table(name)
    caption = f'<p class="soft">{escape(source.caption)}</p>'
    table = html.table(source.columns, source.rows)
    return folded(title, f"{caption}{table}<small>{escape(source.source)}</small>")
