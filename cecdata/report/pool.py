"""The report of a pool: its sentences by origin and licence, their lengths, the rejected rows."""

from __future__ import annotations

from html import escape
from pathlib import Path

from cecdata.common import html, markdown
from cecdata.report.charts import histogram
from cecdata.report.facts import LENGTH_BIN, examples_by_reason
from cecdata.report.page import SHOWN, SHOWN_REJECTED, browser, rejected_table
from cecdata.report.sample import PoolSample
from cecdata.shards.manifest import Manifest

_ORIGINS = 100  # the manifest has all
_HEAD = ("origin", "licence", "sentences", "characters")


def reports(title: str, manifest: Manifest, sample: PoolSample, command: str) -> tuple[str, str]:
    """Return the report of a pool as a page and as Markdown; `command` made the pool."""
    origins = _origins(manifest)
    about = (
        f"{manifest.rows.kept:,} distinct sentences, by {manifest.product} {manifest.version}. "
        f"Lengths are counted over {len(sample.sentences):,} of them."
    )
    lengths = _lengths(sample)
    reasons = examples_by_reason(sample.rejected_rows, "text")
    page = [
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p><p><code>{escape(command)}</code></p>",
        "<h2>Origins and licences</h2>" + html.table(_HEAD, origins),
        "<h2>Rejected rows</h2>" + rejected_table("rows of the corpus", manifest.rows, reasons),
        "<h2>Lengths</h2>" + histogram("Length of a sentence, ten characters to a bar", lengths),
        "<h2>Sentences</h2>" + browser("licence", "origin", "verdict"),
    ]
    rejected = [(name, f"{count:,}") for name, count in manifest.rows.rejected.items()]
    plain = [
        f"# {markdown.text(title)}",
        about,
        markdown.code(command),
        "## Origins and licences\n\n" + markdown.table(_HEAD, origins),
        "## Rejected rows\n\n" + markdown.table(("reason", "rows"), rejected),
        "## Lengths\n\n"
        + markdown.table(("from", "sentences"), ((b, f"{n:,}") for b, n in lengths.items())),
    ]
    data = {"pairs": [*_kept(sample), *_rejected(sample)]}
    whole = html.page(title, "\n".join(page), Path(__file__).parent, data)
    return whole, "\n\n".join(plain) + "\n"


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


def _origins(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    return [
        (
            origin.origin,
            "not stated" if origin.licence is None else origin.licence,
            f"{origin.sentences:,}",
            f"{origin.characters:,}",
        )
        for origin in manifest.origins[:_ORIGINS]
    ]


def _lengths(sample: PoolSample) -> dict[str, int]:
    lengths = sample.sentences["text"].str.len_chars() // LENGTH_BIN * LENGTH_BIN
    counts = lengths.value_counts().sort(lengths.name)
    return {str(low): int(count) for low, count in counts.iter_rows()}
