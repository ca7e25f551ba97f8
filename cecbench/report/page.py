"""The HTML page of a report: one file, no request leaves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from cecbench import published
from cecbench.report import plots
from cecbench.report.cases import JUDGEMENTS, Case
from cecbench.report.overview import Cell, Overview
from cecbench.report.run_tables import (
    cross_tables,
    folded,
    frequency_table,
    meanings,
    runs_section,
    table,
)
from cecbench.results import Run

FOLDER = Path(__file__).parent
#: published tables that are shown as such
TABLES = {
    "cost": "Training cost and throughput",
    "thresholds": "Threshold sweep",
    "encoders": "Choice of the sentence encoder",
}
WORDS = '<td class="words">'
FILTERS = ("benchmark", "system", "judgement", "category", "status")


def page(view: Overview, runs: Sequence[Run], cases: Sequence[Case], left_out: int) -> str:
    """The whole page."""
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    # "</" would end the element that holds the data, and "<!--" swallow what follows it.
    data = json.dumps([asdict(case) for case in cases], ensure_ascii=False).replace("<", "\\u003c")
    body = "\n".join(
        (
            _head(view, runs),
            _table(view),
            _your_figures(view, runs),
            runs_section(runs),
            _cases(cases, left_out),
            _published_figures(),
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Chinese spelling correction: results</title>\n<style>\n{style}</style>\n</head>\n"
        f'<body>\n{body}\n<script id="cases-data" type="application/json">{data}</script>\n'
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _head(view: Overview, runs: Sequence[Run]) -> str:
    warnings = "".join(f'<p class="warning">{escape(text)}</p>' for text in view.warnings)
    systems = len({run.system for run in runs})
    sets = len({run.benchmark for run in runs})
    return (
        "<header><h1>Chinese spelling correction: results</h1>"
        f"<p>{systems} of your systems on {sets} benchmarks, beside the rows that the CEC-Zero "
        "paper prints. Scores are sentence-level F1 in percent unless a name says otherwise; the "
        "range under a score is its 95 % bootstrap interval over sentences.</p>"
        '<nav><a href="#scores">Scores</a><a href="#parts">By category and number of errors</a>'
        '<a href="#runs">What each run did</a><a href="#sentences">Misjudged sentences</a>'
        f'<a href="#paper">The paper’s figures</a></nav>{warnings}</header>'
    )


def _table(view: Overview) -> str:
    notes: list[str] = []
    head = "".join(f"<th>{escape(column)}</th>" for column in view.columns)
    rows, group = [], ""
    for line in view.lines:
        if line.group != group:
            group = line.group
            blank = f'<td colspan="{len(view.columns)}"></td>'
            rows.append(f'<tr class="group"><td>{escape(group)}</td>{blank}</tr>')
        name = f"<td>{escape(line.name)}{_note(line.remark, notes)}</td>"
        cells = "".join(_cell(line.cells.get(column), notes) for column in view.columns)
        kind = ' class="yours"' if line.yours else ""
        rows.append(f"<tr{kind}>{name}{cells}</tr>")
    listed = "".join(f"<li>{escape(text)}</li>" for text in notes)
    return (
        '<section id="scores"><h2>Scores</h2><div class="scroll"><table><thead><tr><th>system</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f'<ol class="notes">{listed}</ol><p class="soft">Published rows: CEC-Zero, arXiv '
        "2512.23971, tab:main; the paper names the CSCD-NS script as its metric. CSCD stands for "
        "the test split of CSCD-NS; CS is the authors’ private set.</p></section>"
    )


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
    figures = [
        plots.scores_with_intervals(view, names),
        *plots.by_category_and_number(runs, names),
    ]
    yours = sum(line.yours for line in view.lines)
    fewer = f" Of your {yours} systems the {len(names)} with the highest mean are drawn."
    return (
        '<section id="parts"><h2>By category and number of errors</h2>'
        "<p>Each part’s F1 comes from the pooled counts of its own sentences; clean sentences are "
        "counted apart. Whiskers are 95 % intervals; hover for the numbers."
        f"{fewer if yours > len(names) else ''}</p>"
        f'<div class="figures">{"".join(figures)}</div>'
        f"{folded('What the categories mean', meanings())}"
        f"{folded('By frequency of the rarest right character', frequency_table(runs))}"
        f"{folded('What the order of the categories decided', cross_tables(runs))}</section>"
    )


def _cases(cases: Sequence[Case], left_out: int) -> str:
    selects = "".join(
        f'<label>{name}<select id="filter-{name}"></select></label>' for name in FILTERS
    )
    more = f" {left_out} more lie in the runs’ predictions.jsonl." if left_out else ""
    kinds = "; ".join(f"<b>{name}</b>: {text}" for name, text in JUDGEMENTS.items())
    legend = (
        '<span class="aligned example"><span class="stack"><span class="src">source</span>'
        '<span class="prd bad">prediction</span><span class="ref">reference</span></span></span>'
    )
    if not cases:
        return (
            '<section id="sentences" hidden><div id="cases"></div><span id="case-count"></span>'
            f'<button id="case-more"></button>{selects}<input id="filter-text"></section>'
        )
    return (
        '<section id="sentences"><h2>Misjudged sentences</h2>'
        f"<p>{kinds}.</p><p>Where the three texts differ they stand above each other: {legend} "
        "A red prediction is wrong, a green one right, ∅ is nothing."
        f'{more}</p><div class="filters">{selects}<label>holds the text'
        '<input id="filter-text" type="search"></label><span id="case-count" class="soft"></span>'
        '</div><div id="cases"></div><p><button id="case-more">Show more</button></p></section>'
    )


def _published_figures() -> str:
    said = (
        [escape(cell) for cell in (name, row, column, text)]
        for name in published.NAMES
        for row, column, text in published.remarks(name)
    )
    remarks = table(("table", "row", "column", "remark"), said)
    return (
        '<section id="paper"><h2>The paper’s figures</h2>'
        '<p class="soft">Drawn from its tables (arXiv 2512.23971); no intervals are printed there.'
        f'</p><div class="figures">{"".join(plots.from_the_paper())}</div>'
        f"{''.join(_plain_table(name, title) for name, title in TABLES.items())}"
        f"{folded('Remarks on printed numbers', remarks.replace('<td>', WORDS))}</section>"
    )


def _plain_table(name: str, title: str) -> str:
    source = published.table(name)
    rows = ([escape(cell) for cell in row] for row in source.rows)
    caption = f'<p class="soft">{escape(source.caption)}</p>'
    return folded(
        title, f"{caption}{table(source.columns, rows)}<small>{escape(source.source)}</small>"
    )
