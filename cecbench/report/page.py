"""The HTML page of a report: tables of the runs, figures, and a list of cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from cecbench import errortypes
from cecbench.curve import REACH, SHARES
from cecbench.errortypes import sentence_type
from cecbench.metrics.rows import Row
from cecbench.report import figures
from cecbench.report.figures import COLOURS
from cecbench.report.overview import OVER_CORRECTION, Cell, Line, Overview
from cecbench.results import Run, RunScore
from cecbench.systems.base import STATUSES
from cecdata.common import html
from cecdata.common.html import Html, folded, percent, table
from cecdata.hanzi.edits import Edit, align

HEADS = (
    "system",
    "benchmark",
    "rows scored",
    "clean changed",
    "edits per 1,000 clean characters",
    "other length",
    "copied",
    "sentences/s",
    "tokens out",
)


def runs_section(runs: Sequence[Run]) -> str:
    """Return the section on the runs' behaviour, answers by status, and signatures."""
    signatures = "".join(
        f"<li>{escape(run.system)}, {escape(run.benchmark)}<br>"
        f"<code>{escape(run.values['signature'])}</code></li>"
        for run in runs
    )
    return (
        '<section id="runs"><h2>What each run did</h2>'
        f"{table(HEADS, (_run_row(run.values) for run in runs))}"
        f"{folded('Answers by status', _answers(runs))}"
        f"{folded('Signatures: what each number means', f'<ul>{signatures}</ul>')}</section>"
    )


def meanings() -> str:
    """Return a table of the categories and their meanings."""
    rows = ([name, text] for name, text in errortypes.MEANING.items())
    return table(["category", "meaning"], rows, words=(0, 1))


def _run_row(values: RunScore) -> list[str]:
    clean = values["breakdown"]["clean"]
    usage = values["usage"]
    changed: str = "no clean ones"
    if clean["sentences"]:
        share = percent(clean["over_correction_rate"], unit=" %")
        changed = Html(f"{clean['changed']} of {clean['sentences']}<small>{share}</small>")
    edits = values.get("behaviour.over_correction_per_1000_chars")
    return [
        values["system"],
        values["benchmark"] + (" (synthetic)" if values["synthetic"] else ""),
        f"{values['rows_scored']} of {values['rows_read']}",
        changed,
        "–" if edits is None else f"{edits:.2f}",
        percent(values.get("behaviour.length_violation_rate"), unit=" %"),
        percent(values.get("behaviour.copy_rate"), unit=" %"),
        str(usage.get("sentences_per_s", "–")),
        str(usage.get("tokens_out") or "–"),
    ]


def _answers(runs: Sequence[Run]) -> str:
    present = [name for name in STATUSES if any(name in run.values["answers"] for run in runs)]
    rows = [
        [
            run.system,
            run.benchmark,
            *(run.values["answers"].get(name, 0) for name in present),
            run.values["unanswered"],
            run.values["traditional_predictions"],
        ]
        for run in runs
    ]
    heads = ["system", "benchmark", *present, "without an answer", "traditional characters"]
    meanings = "".join(f"<li><b>{name}</b>: {escape(STATUSES[name])}</li>" for name in present)
    return f"{table(heads, rows)}<ul>{meanings}</ul>"


#: judgement → its meaning
JUDGEMENTS = {
    "missed": "an error was left as it was",
    "wrong": "a sentence with errors was changed, but not into the reference",
    "over-corrected": "a clean sentence was changed",
}
Piece = str | tuple[str, str, str]  # equal text, or (source, prediction, reference)


@dataclass(frozen=True, slots=True)
class Case:
    """One misjudged sentence; its `pieces` give source, prediction and reference."""

    benchmark: str
    system: str
    id: str
    judgement: str
    category: str
    status: str
    pieces: tuple[Piece, ...]


def judgement(row: Row) -> str | None:
    """Return what is wrong with a prediction; None if it equals the reference."""
    if row.prediction == row.target:
        return None
    if row.source == row.target:
        return "over-corrected"
    return "missed" if row.prediction == row.source else "wrong"


def cases(run: Run, most: int) -> tuple[list[Case], int]:
    """Return the first `most` misjudged sentences of a run, and the number of all."""
    listed: list[Case] = []
    total = 0
    for row, status in zip(run.rows, run.statuses, strict=True):
        why = judgement(row)
        if why is None:
            continue
        total += 1
        if len(listed) < most:
            kind = sentence_type(row.source, row.target).category
            pieces = aligned(row.source, row.prediction, row.target)
            listed.append(Case(run.benchmark, run.system, row.id, why, kind, status, pieces))
    return listed, total


def aligned(source: str, prediction: str, reference: str) -> tuple[Piece, ...]:
    """Return the three texts, cut where one of them differs.

    >>> aligned("他己经来", "他以经来", "他已经来")
    ('他', ('己', '以', '已'), '经来')
    >>> aligned("好", "很好", "好")
    (('', '很', ''), '好')
    """
    # align() takes (perturbed, clean); its offsets are those of the second, here the source.
    sides = [align(text, source) for text in (prediction, reference)]
    pieces: list[Piece] = []
    at = 0
    for start, end in _spans(edit for side in sides for edit in side):
        if start > at:
            pieces.append(source[at:start])
        predicted, right = (_text(source, side, start, end) for side in sides)
        pieces.append((source[start:end], predicted, right))
        at = end
    if at < len(source):
        pieces.append(source[at:])
    return tuple(pieces)


def _spans(edits: Iterable[Edit]) -> list[tuple[int, int]]:
    """Return the spans of edits; those that touch are one, as an insertion would belong to both."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(edit.start, edit.end) for edit in edits}):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _text(source: str, edits: Sequence[Edit], start: int, end: int) -> str:
    """Return what the other text has in place of source[start:end]."""
    text, at = "", start
    for edit in edits:
        if start <= edit.start and edit.end <= end:
            text += source[at : edit.start] + edit.source
            at = edit.end
    return text + source[at:end]


FILTERS = ("benchmark", "system", "judgement", "category", "status")


def page(view: Overview, runs: Sequence[Run], cases: Sequence[Case], left_out: int) -> str:
    """Return the whole page; `left_out` misjudged sentences are not among the `cases`."""
    sections = (
        _head(view, runs),
        _curves(view, runs),
        _scores(view),
        _your_figures(view, runs),
        runs_section(runs),
        _cases(view, cases, left_out),
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
        '<nav><a href="#curves">Corrected and over-corrected</a><a href="#scores">Scores</a>'
        '<a href="#parts">By category</a>'
        '<a href="#runs">What each run did</a><a href="#sentences">Misjudged sentences</a></nav>'
        f"{warnings}</header>"
    )


def _curves(view: Overview, runs: Sequence[Run]) -> str:
    """Return the first section: what a system corrects for what it spoils."""
    drawings = figures.over_correction(runs, figures.drawn(view))
    rows = []
    for run in runs:
        if "curve" in run.values:
            curve = run.values["curve"]
            best = [percent(point["f"]) for point in curve["points"]]
            rows.append([run.system, run.benchmark, percent(curve["area"]), *best])
    heads = ["system", "benchmark", f"mean up to {REACH:.0%}", *(f"≤ {s:.1%}" for s in SHARES)]
    note = (
        "<p>The highest F1 that is reached while at most so many error-free sentences are changed; "
        "its threshold was chosen on these very sentences.</p>"
    )
    listed = note + table(heads, rows) if rows else ""
    return (
        '<section id="curves"><h2>Corrected and over-corrected</h2>'
        "<p>Further up is better, further left too: users first leave a corrector that changes "
        "what was right. A dot is a run; a line shows every threshold of a system that gives a "
        f'confidence.</p><div class="figures">{"".join(drawings.values())}</div>{listed}</section>'
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
    names = figures.drawn(view)
    drawings = figures.by_category(runs, names)
    parts = "".join(folded(benchmark, drawing) for benchmark, drawing in drawings.items())
    return (
        '<section id="parts"><h2>By category</h2>'
        "<p>Each part’s F1 comes from the pooled counts of its own sentences; clean sentences are "
        f"counted apart. Whiskers are 95 % intervals; hover for the numbers.{_not_drawn(view)}</p>"
        f"{parts}"
        f"{folded('What the categories mean', meanings())}</section>"
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
