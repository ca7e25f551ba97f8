"""The overview as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from cecbench import published
from cecbench.report.overview import Cell, Line, Overview
from cecbench.report.text import headline, lines_of
from cecbench.results import Run

SOURCE = "Published rows: CEC-Zero, arXiv 2512.23971, tab:main; metric as the paper says it."
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def markdown(view: Overview, runs: Sequence[Run]) -> str:
    """A table of everything, footnotes for its remarks, then each run with its parts."""
    notes: list[str] = []
    head = ["system", *view.columns]
    lines = [
        "# Chinese spelling correction: results",
        "",
        "Sentence-level F1 in percent; [low, high] is the 95 % bootstrap interval over sentences.",
        SOURCE,
        "",
        *(f"> {text}\n" for text in view.warnings),
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
    ]
    for line in view.lines:
        name = f"**{line.name}**" if line.yours else _marked(line.name, line.remark, notes)
        cells = [_markdown_cell(line.cells.get(column), notes) for column in view.columns]
        lines.append(f"| {' | '.join([name, *cells])} |")
    lines += ["", *(f"{number}. {text}" for number, text in enumerate(notes, 1)), ""]
    lines += ["## Your runs", ""]
    for run in runs:
        lines += ["```", headline(run.values), *lines_of(run.values), "", "```"]
        lines += [f"`{run.values['signature']}`", ""]
    return "\n".join(lines)


def latex(view: Overview) -> str:
    """A table for LaTeX; the package booktabs is all it needs."""
    columns = [c for c in view.columns if any(c in line.cells for line in view.lines)]
    lines = [
        "% " + SOURCE,
        r"\begin{tabular}{l" + "r" * len(columns) + "}",
        r"\toprule",
        " & ".join(["System", *map(_escaped, columns)]) + r" \\",
    ]
    group = ""
    for line in view.lines:
        if line.group != group:
            group = line.group
            lines.append(r"\midrule")
        name = rf"\textbf{{{_escaped(line.name)}}}" if line.yours else _escaped(line.name)
        lines.append(" & ".join([name, *(_latex_cell(line, c) for c in columns)]) + r" \\")
    wrong = [line for line in view.lines if not line.yours and line.cells["avg"].remark]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"% $^\ast$ {line.name}: {line.cells['avg'].remark}" for line in wrong]
    return "\n".join(lines) + "\n"


def table_csv(view: Overview) -> str:
    """One line a number: system, group, benchmark, value, low, high, remark."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["system", "group", "benchmark", "f1_percent", "low", "high", "remark"])
    for line in view.lines:
        for column in view.columns:
            cell = line.cells.get(column)
            if cell is not None:
                numbers = [_fixed(n) for n in (cell.value, cell.low, cell.high)]
                writer.writerow([line.name, line.group, column, *numbers, cell.remark])
    return out.getvalue()


def as_json(view: Overview, runs: Sequence[Run]) -> str:
    """The table, each run's whole score, and every published table."""
    record = {
        "columns": list(view.columns),
        "rows": [
            {
                "system": line.name,
                "group": line.group,
                "remark": line.remark,
                "scores": {name: _json_cell(cell) for name, cell in line.cells.items()},
            }
            for line in view.lines
        ],
        "signatures": dict(view.signatures),
        "warnings": list(view.warnings),
        "runs": [dict(run.values) for run in runs],
        "published": published.as_json(),
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def _marked(text: str, remark: str, notes: list[str]) -> str:
    if not remark:
        return text
    if remark not in notes:
        notes.append(remark)
    return f"{text} <sup>{notes.index(remark) + 1}</sup>"


def _markdown_cell(cell: Cell | None, notes: list[str]) -> str:
    if cell is None or cell.value is None:
        return "–"
    text = f"{cell.value:.2f}"
    if cell.low is not None and cell.high is not None:
        text += f" [{cell.low:.1f}, {cell.high:.1f}]"
    return _marked(text, cell.remark, notes)


def _latex_cell(line: Line, column: str) -> str:
    cell = line.cells.get(column)
    if cell is None or cell.value is None:
        return "--"
    text = f"{cell.value:.2f}"
    if cell.low is not None and cell.high is not None:
        text += rf"\,{{\tiny[{cell.low:.1f}, {cell.high:.1f}]}}"
    return text + (r"$^\ast$" if cell.remark and not line.yours else "")


def _json_cell(cell: Cell) -> dict[str, object]:
    return {"f1_percent": cell.value, "low": cell.low, "high": cell.high, "remark": cell.remark}


def _fixed(number: float | None) -> str:
    return "" if number is None else f"{number:.4f}"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
