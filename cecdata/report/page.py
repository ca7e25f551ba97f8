"""The HTML page of a report: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import html
from cecdata.common.html import Html, percent, table
from cecdata.report.charts import heat_map, histogram
from cecdata.report.facts import Facts
from cecdata.report.sample import Sample
from cecdata.shards.manifest import Counts, Manifest

if TYPE_CHECKING:
    import polars as pl

SHOWN = 1_500  # kept pairs in the browser, shared among the operators
SHOWN_REJECTED = 400


def page(title: str, manifest: Manifest, sample: Sample, facts: Facts, command: str) -> str:
    """Return the whole page; `command` made the dataset."""
    sections = (
        _head(title, manifest, sample, facts, command),
        _counts(manifest, facts),
        _rejects(manifest, facts),
        _rates(manifest),
        "<h2 id='shape'>Distances, lengths and places</h2><div class='figures'>",
        *(histogram(name, counts) for name, counts in facts.histograms.items()),
        "</div>",
        _confusions(facts),
        _coverage(facts),
        "<h2 id='pairs'>Pairs</h2><p>The right text is struck out; its error follows in red.</p>",
        browser("operator", "origin", "verdict"),
    )
    return html.page(title, "\n".join(sections), Path(__file__).parent, _data(sample, facts))


def _head(title: str, manifest: Manifest, sample: Sample, facts: Facts, command: str) -> str:
    basis = (
        "All numbers count all pairs."
        if sample.whole
        else "Operators, rates and rejects are counted over all pairs; kinds, origins, "
        f"histograms, confusions and coverage over a sample of {facts.pairs:,} pairs."
    )
    splits = ", ".join(
        f"{sum(file.rows for file in files):,} in {name}"
        for name, files in manifest.outputs.items()
    )
    links = {
        "counts": "Counts",
        "rejects": "Rejects",
        "rates": "Rates",
        "shape": "Histograms",
        "confusions": "Confusions",
        "coverage": "Coverage",
        "pairs": "Pairs",
    }
    nav = "".join(f'<a href="#{key}">{name}</a>' for key, name in links.items())
    return (
        f"<h1>{escape(title)}</h1><p>{manifest.pairs.kept:,} pairs ({splits}) from "
        f"{manifest.rows.kept:,} sentences, by {escape(manifest.product)} "
        f"{escape(manifest.version)}, configuration <code>{manifest.fingerprint[:12]}</code>. "
        f"{basis}</p><p><code>{escape(command)}</code></p><nav>{nav}</nav>"
    )


def _counts(manifest: Manifest, facts: Facts) -> str:
    total = sum(manifest.operators.values()) or 1
    operators = [(n, f"{c:,}", percent(c / total, 1, " %")) for n, c in manifest.operators.items()]
    kinds = _shares(facts.kinds.items(), facts.edits)
    origins = _shares(facts.origins.items(), facts.pairs)
    return (
        "<h2 id='counts'>Counts</h2><div class='figures'>"
        + table(("operator", "pairs", "share"), operators)
        + table(("kind of edit", "edits", "share"), kinds)
        + table(("origin", "pairs", "share"), origins[:40])
        + "</div>"
        + (f"<p>… and {len(origins) - 40:,} more origins.</p>" if len(origins) > 40 else "")
    )


def _shares(counts: Iterable[tuple[str, int]], total: int) -> list[tuple[str, str, str]]:
    return [(name, f"{n:,}", percent(n / (total or 1), 1, " %")) for name, n in counts]


def _rejects(manifest: Manifest, facts: Facts) -> str:
    parts = ["<h2 id='rejects'>Rejects, duplicates and contamination</h2>"]
    for what, counts in (("rows of the corpus", manifest.rows), ("pairs", manifest.pairs)):
        parts.append(rejected_table(what, counts, facts.reasons))
    return "\n".join(parts)


def rejected_table(what: str, counts: Counts, examples: Mapping[str, Sequence[str]]) -> str:
    """Return a paragraph that adds up, and a table of the reasons with their examples."""
    rejected = sum(counts.rejected.values())
    total = f"{counts.read:,} {what} read = {counts.kept:,} kept + {rejected:,} rejected."
    rows = [
        (reason, f"{n:,}", percent(n / counts.read, 2, " %"), _lines(examples.get(reason, ())))
        for reason, n in counts.rejected.items()
    ]
    head = ("reason", what, "share", "examples")
    return f"<p>{total}</p>" + (table(head, rows, words=(3,)) if rows else "")


def _lines(texts: Sequence[str]) -> Html:
    return Html("<br>".join(escape(text[:80]) for text in texts))


def _rates(manifest: Manifest) -> str:
    rows = [
        (c.operator, *(percent(value, 2, " %") for value in (c.target, c.reachable, c.achieved)))
        for c in manifest.calibration
    ]
    if not rows:
        return "<h2 id='rates'>Error rates</h2><p>The recipe sets no rates.</p>"
    return (
        "<h2 id='rates'>Error rates</h2><p>Distance over length of the target, on average. "
        "A rate is reachable if a pair of this corpus can have it: one edit in a short sentence "
        "is more than a low rate allows.</p>"
        + table(("operator", "wanted", "reachable", "achieved"), rows)
    )


def _confusions(facts: Facts) -> str:
    if not facts.confusions:
        return "<h2 id='confusions'>Confusions</h2><p>No text was replaced by another.</p>"
    return (
        "<h2 id='confusions'>Confusions</h2><p>The texts that were perturbed most often, and what "
        "was written for them. A stronger colour is a larger share of the row.</p>"
        + heat_map(facts.confusions)
        + f"<p><label>Search the {len(facts.confusions):,} most frequent confusions: "
        '<input id="confusion-text" type="search" lang="zh" autocomplete="off"></label> '
        '<span id="confusion-count" class="soft" role="status"></span></p>'
        '<ul id="confusion-list" class="chips" lang="zh"></ul>'
    )


def _coverage(facts: Facts) -> str:
    rows = [
        (c.name, f"{c.all:,}", f"{c.seen:,}", percent(c.seen / c.all, 1, " %"), f"{c.perturbed:,}")
        for c in facts.coverage
    ]
    return (
        "<h2 id='coverage'>Coverage</h2><p>Characters of 通用规范汉字表 and words of the lexicon "
        "that occur in the targets, and those on which an error struck.</p>"
        + table(("what", "in the list", "in the targets", "share", "perturbed"), rows)
    )


def browser(*fields: str) -> str:
    """Return the browser of the page's rows, with a filter for each of the fields of `page.js`."""
    filters = "".join(f'<label>{name}<select id="pair-{name}"></select></label>' for name in fields)
    return (
        f'<div class="filters">{filters}<label>text<input id="pair-text" type="search" lang="zh" '
        'autocomplete="off"></label></div><p id="pair-count" role="status"></p>'
        '<div id="pair-list"></div><button id="pair-more" type="button">Show more</button>'
        '<noscript><p class="warning">This list needs JavaScript.</p></noscript>'
    )


def _data(sample: Sample, facts: Facts) -> dict[str, object]:
    import polars as pl

    each = SHOWN // max(1, sample.pairs["operator"].n_unique())
    kept = sample.pairs.group_by("operator", maintain_order=True).head(each)
    rejected = sample.rejected_pairs.group_by("reason", maintain_order=True).head(SHOWN_REJECTED)
    rows = [*_rows(kept.with_columns(reason=pl.lit("kept"))), *_rows(rejected)]
    confusions = [(c.target, c.source, c.operator, c.count) for c in facts.confusions]
    return {"pairs": rows, "confusions": confusions}


def _rows(frame: pl.DataFrame) -> list[list[object]]:
    columns = ("target", "edits", "operator", "origin", "reason", "distance", "cosine")
    return [
        [
            target,
            [[e["start"], e["end"], e["source"], e["operator"], e["kind"]] for e in edits],
            *facts,
            None if cosine is None else round(cosine, 3),
        ]
        for target, edits, *facts, cosine in frame.select(columns).iter_rows()
    ]
