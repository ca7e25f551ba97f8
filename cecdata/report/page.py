"""The HTML pages of a dataset of pairs and of a pool: one file each that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import html
from cecdata.common.html import Html, percent, table
from cecdata.corpus.reading import unread
from cecdata.report.facts import (
    LENGTH_BIN,
    Confusion,
    Facts,
    PoolSample,
    Sample,
    examples_by_reason,
)
from cecdata.shards.manifest import Counts, Manifest

if TYPE_CHECKING:
    import polars as pl

SHOWN = 1_500  # kept pairs in the browser, shared among the operators
SHOWN_REJECTED = 400
ORIGINS = 100  # the manifest has all
HEAD = ("origin", "licence", "sentences", "characters")
_WIDTH, _HEIGHT, _FOOT, _LEFT = 340, 150, 34, 8
ROWS, COLUMNS = 24, 8  # of the heat map
_UNREAD = 40  # most files that are named


def page(title: str, manifest: Manifest, sample: Sample, facts: Facts, command: str) -> str:
    """Return the whole page; `command` made the dataset."""
    sections = (
        _head(title, manifest, sample, facts, command),
        _counts(manifest, facts),
        _rejects(manifest, facts),
        _sources(manifest),
        _rates(manifest),
        "<h2 id='shape'>Distances, lengths and places</h2><div class='figures'>",
        *(histogram(name, counts) for name, counts in facts.histograms.items()),
        "</div>",
        _confusions(facts),
        _coverage(facts),
        "<h2 id='pairs'>Pairs</h2><p>The right text is struck out; its error follows in red.</p>",
        _browser("operator", "origin", "verdict"),
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
        "sources": "Sources",
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
        parts.append(_rejected_table(what, counts, facts.reasons))
    return "\n".join([*parts, _unread(manifest)])


def _unread(manifest: Manifest) -> str:
    """Return the inputs that were not read, or not completely."""
    found = unread(manifest.inputs)
    more = "" if len(found) <= _UNREAD else f"<p>… and {len(found) - _UNREAD:,} more files.</p>"
    return "".join(f"<p>{escape(str(file))}</p>" for file in found[:_UNREAD]) + more


def _rejected_table(what: str, counts: Counts, examples: Mapping[str, Sequence[str]]) -> str:
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


def _sources(manifest: Manifest) -> str:
    """Return the licences by origin, and what the pools did that the sentences came from."""
    parts = ["<h2 id='sources'>Sources and licences</h2>"]
    if manifest.origins:
        parts.append(table(HEAD, origins(manifest)))
    else:
        parts.append("<p>This dataset does not record the licences of its origins.</p>")
    for pool in manifest.pools:
        settings = [(name, str(value)) for name, value in pool.configuration.items() if value]
        parts.append(f"<h3>The pool {escape(pool.path)}</h3>")
        parts.append(_rejected_table("rows of its corpus", pool.rows, {}))
        parts.append(html.folded("Its settings", table(("setting", "value"), settings, words=(1,))))
    return "\n".join(parts)


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


def _browser(*fields: str) -> str:
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


def pool_page(title: str, manifest: Manifest, sample: PoolSample, command: str) -> str:
    """Return the whole page of a pool; `command` made it."""
    reasons = examples_by_reason(sample.rejected_rows, "text")
    sections = (
        f"<h1>{escape(title)}</h1><p>{escape(about_pool(manifest, sample))}</p>",
        f"<p><code>{escape(command)}</code></p>",
        "<h2>Origins and licences</h2>" + table(HEAD, origins(manifest)),
        "<h2>Rejected rows</h2>" + _rejected_table("rows of the corpus", manifest.rows, reasons),
        _unread(manifest),
        "<h2>Lengths</h2>"
        + histogram("Length of a sentence, ten characters to a bar", lengths(sample)),
        "<h2>Sentences</h2>" + _browser("licence", "origin", "verdict"),
    )
    data = {"pairs": [*_kept(sample), *_rejected(sample)]}
    return html.page(title, "\n".join(sections), Path(__file__).parent, data)


def about_pool(manifest: Manifest, sample: PoolSample) -> str:
    """Return a paragraph on a pool."""
    return (
        f"{manifest.rows.kept:,} distinct sentences, by {manifest.product} {manifest.version}. "
        f"Lengths are counted over {len(sample.sentences):,} of them."
    )


def _kept(sample: PoolSample) -> list[list[object]]:
    """Return rows of the browser: sentences of all origins, at most SHOWN of them."""
    each = max(1, SHOWN // max(1, sample.sentences["origin"].n_unique()))
    shown = sample.sentences.group_by("origin", maintain_order=True).head(each).head(SHOWN)
    columns = shown.select("text", "licence", "origin").iter_rows()
    return [[t, [], licence or "not stated", o, "kept", None, None] for t, licence, o in columns]


def _rejected(sample: PoolSample) -> list[list[object]]:
    """Return rows of the browser: rejected rows of each reason, and where they are."""
    shown = sample.rejected_rows.group_by("reason", maintain_order=True).head(SHOWN_REJECTED)
    columns = ("text", "origin", "reason", "file", "row", "detail")
    return [
        [text, [], "", origin, reason, None, None, f"{file}, row {row}{detail and f': {detail}'}"]
        for text, origin, reason, file, row, detail in shown.select(columns).iter_rows()
    ]


def origins(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table of origins, whose head is `HEAD`."""
    return [
        (
            origin.origin,
            "not stated" if origin.licence is None else origin.licence,
            f"{origin.sentences:,}",
            f"{origin.characters:,}",
        )
        for origin in manifest.origins[:ORIGINS]
    ]


def lengths(sample: PoolSample) -> dict[str, int]:
    """Return the number of sentences by length, in steps of ten characters."""
    column = sample.sentences["text"].str.len_chars() // LENGTH_BIN * LENGTH_BIN
    counts = column.value_counts().sort(column.name)
    return {str(low): int(count) for low, count in counts.iter_rows()}


def histogram(title: str, counts: Mapping[str, int]) -> Html:
    """Return a figure with one bar for each bin, whose key is its label."""
    total, highest = sum(counts.values()), max(counts.values(), default=0)
    if not highest:
        return Html("")
    step = (_WIDTH - 2 * _LEFT) / len(counts)
    plot = _HEIGHT - _FOOT
    every = max(1, -(-len(counts) // 12))
    parts = []
    for place, (name, number) in enumerate(counts.items()):
        height = max(1.0, (plot - 14) * number / highest)
        x = _LEFT + place * step
        tip = f"{name}: {number:,} ({number / total:.1%})"
        parts.append(
            f'<rect class="s0" x="{x + step * 0.08:.1f}" y="{plot - height:.1f}" '
            f'width="{step * 0.84:.1f}" height="{height:.1f}"><title>{escape(tip)}</title></rect>'
        )
        if place % every == 0:
            parts.append(
                f'<text class="axis" x="{x + step / 2:.1f}" y="{plot + 14}" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
    said = "; ".join(f"{name}: {number / total:.1%}" for name, number in counts.items())
    return Html(
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        f'aria-label="{escape(title)}. {escape(said)}">{"".join(parts)}</svg></figure>'
    )


def heat_map(confusions: Sequence[Confusion]) -> Html:
    """Return a row for each of the most perturbed texts, with what was most often written for it.

    The shade of a cell is the share of the row's errors.
    """
    rows: dict[str, list[Confusion]] = {}
    for confusion in confusions:
        rows.setdefault(confusion.target, []).append(confusion)
    most = sorted(rows.items(), key=lambda row: (-sum(c.count for c in row[1]), row[0]))[:ROWS]
    lines = []
    for target, cells in most:
        total = sum(c.count for c in cells)
        shown = "".join(
            f'<td style="--heat:{c.count / total:.2f}">{escape(c.source)}'
            f"<small>{c.count:,}</small></td>"
            for c in cells[:COLUMNS]
        )
        lines.append(
            f'<tr><th scope="row">{escape(target)}<small>{total:,}</small></th>{shown}</tr>'
        )
    return Html(
        '<div class="scroll" tabindex="0" role="region" aria-label="heat map of confusions">'
        '<table class="heat" lang="zh">' + "".join(lines) + "</table></div>"
    )
