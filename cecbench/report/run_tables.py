"""The page's tables about the runs: their behaviour, their parts, and the cross table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cecbench import errortypes
from cecbench.results import Run
from cecbench.score_shape import Rates, RunScore
from cecbench.systems.answer import STATUSES
from cecdata.common.html import Html, folded, percent, table

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


CROSS = (
    "An error is counted under the first category that it has. Each row says how many of its "
    "errors have which other properties too."
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


def frequency_table(runs: Sequence[Run]) -> str:
    """Return F1 by the frequency of the rarest right character, with the number of sentences."""
    bands = [name for _, name in errortypes.FREQUENCY_BANDS]
    rows = []
    for run in runs:
        parts = run.values["breakdown"]["frequency"]
        cells = [_part(parts.get(band)) for band in bands]
        rows.append([run.system, run.benchmark, *cells])
    return table(["system", "benchmark", *(f"{band} per million" for band in bands)], rows)


def cross_tables(runs: Sequence[Run]) -> str:
    """Return for each benchmark how many errors of a category have which other properties."""
    first: dict[str, RunScore] = {}
    for run in runs:
        first.setdefault(run.benchmark, run.values)
    parts = [f"<p>{CROSS}</p>"]
    for name, values in first.items():
        cross = values["breakdown"]["cross_table"]
        rows = []
        for leaf in errortypes.LEAVES:
            counts = cross.get(leaf, {})
            if any(counts.values()):
                rows.append([leaf, *(str(counts.get(other) or "") for other in errortypes.LEAVES)])
        heads = ["counted as", *(f"is {leaf}" for leaf in errortypes.LEAVES)]
        parts.append(f"<p><b>{escape(name)}</b></p>{table(heads, rows)}")
    return "".join(parts)


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


def _part(part: Rates | None) -> str:
    return Html(f"{percent(part['f'])}<small>n={part['sentences']}</small>") if part else "–"
