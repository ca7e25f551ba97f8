"""The page's tables about the runs themselves: what each did, parts, what the categories hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from cecbench import errortypes
from cecbench.report.text import percent, section
from cecbench.results import Run
from cecbench.systems.answer import STATUSES
from cecdata.common.html import Html, folded, table

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
    "An error is counted under the first category that holds. A row says how many of its errors "
    "have which other properties too."
)


def runs_section(runs: Sequence[Run]) -> str:
    """What each run did, its answers by status, and the signatures."""
    signatures = "".join(
        f"<li>{escape(run.system)}, {escape(run.benchmark)}<br>"
        f"<code>{escape(str(run.values['signature']))}</code></li>"
        for run in runs
    )
    return (
        '<section id="runs"><h2>What each run did</h2>'
        f"{table(HEADS, (_run_row(run.values) for run in runs))}"
        f"{folded('Answers by status', _answers(runs))}"
        f"{folded('Signatures: what each number means', f'<ul>{signatures}</ul>')}</section>"
    )


def frequency_table(runs: Sequence[Run]) -> str:
    """F1 by the frequency of the rarest right character, each cell with its sentences."""
    bands = [name for _, name in errortypes.FREQUENCY_BANDS]
    rows = []
    for run in runs:
        parts = section(run.values, "breakdown", "frequency")
        cells = [_part(section(parts, band)) for band in bands]
        rows.append([run.system, run.benchmark, *cells])
    return table(["system", "benchmark", *(f"{band} per million" for band in bands)], rows)


def cross_tables(runs: Sequence[Run]) -> str:
    """For each benchmark: of the errors in a category, how many also have another property."""
    first: dict[str, Mapping[str, object]] = {}
    for run in runs:
        first.setdefault(run.benchmark, run.values)
    found = [f"<p>{CROSS}</p>"]
    for name, values in first.items():
        cross = section(values, "breakdown", "cross_table")
        rows = []
        for leaf in errortypes.LEAVES:
            counts = section(cross, leaf)
            if any(counts.values()):
                rows.append([leaf, *(str(counts.get(other) or "") for other in errortypes.LEAVES)])
        heads = ["counted as", *(f"is {leaf}" for leaf in errortypes.LEAVES)]
        found.append(f"<p><b>{escape(name)}</b></p>{table(heads, rows)}")
    return "".join(found)


def meanings() -> str:
    """The categories in words."""
    rows = ([name, text] for name, text in errortypes.MEANING.items())
    return table(["category", "meaning"], rows, words=(0, 1))


def _run_row(values: Mapping[str, object]) -> list[str]:
    clean = section(values, "breakdown", "clean")
    used = section(values, "usage")
    share = percent(clean.get("over_correction_rate"))
    changed = Html(f"{clean.get('changed')} of {clean.get('sentences')}<small>{share} %</small>")
    edits = values.get("behaviour.over_correction_per_1000_chars")
    return [
        str(values["system"]),
        str(values["benchmark"]) + (" (synthetic)" if values["synthetic"] else ""),
        f"{values['rows_scored']} of {values['rows_read']}",
        changed if clean.get("sentences") else "no clean ones",
        "–" if edits is None else f"{float(str(edits)):.2f}",
        f"{percent(values.get('behaviour.length_violation_rate'))} %",
        f"{percent(values.get('behaviour.copy_rate'))} %",
        str(used.get("sentences_per_s", "–")),
        str(used.get("tokens_out") or "–"),
    ]


def _answers(runs: Sequence[Run]) -> str:
    present = [
        name for name in STATUSES if any(name in section(run.values, "answers") for run in runs)
    ]
    rows = [
        [
            run.system,
            run.benchmark,
            *(str(section(run.values, "answers").get(name, 0)) for name in present),
            str(run.values.get("unanswered", "–")),
            str(run.values.get("traditional_predictions", "–")),
        ]
        for run in runs
    ]
    heads = ["system", "benchmark", *present, "without an answer", "traditional characters"]
    said = "".join(f"<li><b>{name}</b>: {escape(STATUSES[name])}</li>" for name in present)
    return f"{table(heads, rows)}<ul>{said}</ul>"


def _part(part: Mapping[str, object]) -> str:
    if not part:
        return "–"
    return Html(f"{percent(part['f'])}<small>n={part['sentences']}</small>")
