"""The page of a training run: held-out scores before and after, and their course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from cecbench.report.plot import plot
from cecdata.common import durable, html, markdown
from cecdata.common.codec import Json
from cectrain.store import metrics_log

PAGE = "report.html"
_MOST = 12  # points of a curve; more are averaged in equal parts
_FIGURES = {
    "Held-out sentences by batch of PPO, %": (
        "heldout",
        {"heldout_exact": "exact", "heldout_over_correction": "over-correction"},
    ),
    "Candidates by batch of PPO, %": (
        "ppo",
        {"reward": "reward", "exact_rate": "exact", "copy_rate": "copies of the source"},
    ),
}


def write_page(out: Path, summary: Mapping[str, Json]) -> str:
    """Write the page of the finished run in `out`, and return its tables in Markdown."""
    names = ("parameters", "training_pairs", "sft_steps", "ppo_batches", "seconds")
    facts = [[name.replace("_", " "), f"{summary[name]:,}"] for name in names]
    path = out / metrics_log.FILE
    figures = [
        _curve(title, metrics_log.lines(path, phase), columns)
        for title, (phase, columns) in _FIGURES.items()
    ]
    note = (
        f"{summary['heldout_rows']} held-out sentences with synthetic errors. One seed shows no "
        "difference between methods: <code>python -m experiments evidence</code> compares several."
    )
    tables = [_scores(summary), (["run", "value"], facts)]
    title = f"Training run {out.resolve().name}"
    shown = "".join([*figures, *(html.table(*table) for table in tables)])
    words = f"<h1>{escape(title)}</h1>\n<p>{_change(summary)}</p>\n<p>{note}</p>\n"
    durable.write_beside(out, {PAGE: html.page(title, words + shown)})
    return "\n\n".join([_change(summary), *(markdown.table(*table) for table in tables)])


def _scores(summary: Mapping[str, Json]) -> tuple[list[str], list[list[str]]]:
    """Return the held-out scores at the start, before and after PPO."""
    stages = {
        name.replace("_", " "): scores
        for name in ("at_start", "after_sft", "after_ppo")
        if isinstance(scores := summary.get(f"heldout_{name}"), dict)
    }
    rows = [
        [name.removeprefix("heldout_"), *(_shown(scores.get(name)) for scores in stages.values())]
        for name in stages["after ppo"]
    ]
    return ["held out, %", *stages], rows


def _change(summary: Mapping[str, Json]) -> str:
    """Return what PPO did to the held-out exact rate, as a sentence."""
    before, after = summary["heldout_exact_after_sft"], summary["heldout_exact_after_ppo"]
    if not summary["ppo_batches"]:
        return "PPO was not run."
    if not isinstance(before, float) or not isinstance(after, float):
        return "The held-out exact rate is unknown."
    if after > before:
        return f"PPO raised the held-out exact rate by {after - before:.1%}."
    return f"PPO did not raise the held-out exact rate ({before:.1%} → {after:.1%})."


def _curve(title: str, lines: Sequence[Mapping[str, float]], columns: Mapping[str, str]) -> str:
    """Draw columns of a log over its steps; a figure of fewer than two points is empty."""
    if len(lines) < 2:
        return ""
    parts = np.array_split(np.arange(len(lines)), min(_MOST, len(lines)))
    series = {
        name: [
            (lines[part[-1]]["step"], 100 * float(np.mean([lines[i][column] for i in part])))
            for part in parts
        ]
        for column, name in columns.items()
        if all(column in line for line in lines)
    }
    return plot(title, "batch", series, {})


def _shown(value: Json) -> str:
    return html.percent(value if isinstance(value, float) else None, 1)
