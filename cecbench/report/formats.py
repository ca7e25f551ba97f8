"""The overview as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from cecbench import published
from cecbench.report.overview import OVER_CORRECTION, Cell, Line, Overview
from cecbench.report.text import headline, lines_of
from cecbench.results import Run
from cecdata.common import markdown as md
from cecdata.common.html import percent
from cecdata.common.markdown import Markdown

SOURCE = "Published rows: CEC-Zero, arXiv 2512.23971, tab:main, by the metric that the paper names."
INTERVALS = (
    "Sentence-level F1 in percent; [low, high] is the 95 % bootstrap interval over sentences."
)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
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
    """Return a table of everything, footnotes for its remarks, then each run with its parts."""
    notes: list[str] = []
    rows = []
    for line in view.lines:
        name = Markdown(f"**{md.text(line.name)}**") if line.yours else md.text(line.name)
        cells = [_markdown_cell(line.cells.get(column), notes) for column in view.columns]
        rows.append([_marked(name, line.remark, notes), _over_correction(line), *cells])
    parts = [
        "# Chinese spelling correction: results",
        f"{INTERVALS} {SOURCE}",
        *(f"> {md.text(warning)}" for warning in view.warnings),
        md.table(["system", OVER_CORRECTION, *view.columns], rows),
        "\n".join(f"{number}. {md.text(note)}" for number, note in enumerate(notes, 1)),
        "## Your runs",
    ]
    for run in runs:
        parts += [md.fenced([headline(run.values), *lines_of(run.values)])]
        parts += [md.code(run.values["signature"])]
    return "\n\n".join(parts) + "\n"


def latex(view: Overview) -> str:
    """Return a table for LaTeX, which needs the package booktabs."""
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
    lines += [rf"% $^\ast$ {md.one_line(line.name)}: {line.cells['avg'].remark}" for line in wrong]
    return "\n".join(lines) + "\n"


def table_csv(view: Overview) -> str:
    """Return one line per number: system, group, benchmark, value, low, high, remark."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["system", "group", "benchmark", "f1_percent", "low", "high", "remark"])
    for line in view.lines:
        for column in view.columns:
            cell = line.cells.get(column)
            if cell is not None:
                numbers = [_fixed(n) for n in (cell.value, cell.low, cell.high)]
                words = [_csv_text(word) for word in (line.name, line.group, column, cell.remark)]
                writer.writerow([*words[:3], *numbers, words[3]])
    return out.getvalue()


def as_json(view: Overview, runs: Sequence[Run]) -> str:
    """Return the table, each run's whole score, and every published table."""
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
        "published": published.as_json(),
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def _marked(text: str, remark: str, notes: list[str]) -> Markdown:
    """Return a cell followed by the number of its remark, raised."""
    if not remark:
        return Markdown(text)
    if remark not in notes:
        notes.append(remark)
    return Markdown(f"{text} {str(notes.index(remark) + 1).translate(_RAISED)}")


def _over_correction(line: Line) -> str:
    if line.over_correction is None:
        return "" if not line.yours else "–"
    return f"{percent(line.over_correction)} ({line.clean_changed} of {line.clean})"


def _markdown_cell(cell: Cell | None, notes: list[str]) -> Markdown:
    if cell is None or cell.value is None:
        return Markdown("–")
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


def _csv_text(text: str) -> str:
    """Return a cell of one line that no spreadsheet takes for a formula."""
    line = md.one_line(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in md.one_line(text))
