"""The report of a dataset of pairs: one HTML page that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import polars as pl
import pyarrow as pa

from cecdata.common import html
from cecdata.common.durable.workspace import write_beside
from cecdata.common.errors import VerificationError
from cecdata.common.html import Html, format_percent, write_table
from cecdata.corpus.reading import report_unread
from cecdata.shards.card import RATE, list_rate_rows
from cecdata.shards.manifest import Counts, Manifest
from cecdata.shards.reader import Dataset, open_dataset
from cecdata.shards.schema import PAIR, REJECTED_PAIR, REJECTED_ROW

REPORT = "report.html"
MOST_READ = 200_000  # pairs, nearly
SHOWN = 1_500  # kept rows in the browser, shared among the operators or origins
SHOWN_REJECTED = 400  # of each reason
CONFUSIONS = 2_000
EXAMPLES = 4  # of each reason
_UNREAD = 40  # most files that are named


def write_report(out: Path, to: Path | None = None) -> Path:
    """Write the report of the dataset at `out`, and return its path.

    The file is written to the folder `to`, by default `out`. Raises InputError and
    VerificationError as `open_dataset` does.
    """
    dataset = open_dataset(out)
    drawn = draw_sample(dataset, MOST_READ)
    folder = to or out
    folder.mkdir(parents=True, exist_ok=True)
    text = make_page(out.resolve().name, dataset.manifest, drawn)
    write_beside(folder, {REPORT: text})
    return folder / REPORT


def make_page(name: str, manifest: Manifest, sample: Sample) -> str:
    """Return the page of a dataset of pairs."""
    edits = sample.kept.lazy().select("edits").explode("edits").drop_nulls().unnest("edits")
    replaced = find_frequent_confusions(edits)
    splits = ", ".join(
        f"{sum(file.rows for file in files):,} in {split}"
        for split, files in manifest.outputs.items()
    )
    basis = (
        "All numbers count all pairs."
        if sample.whole
        else "Operators, rates and rejects are counted over all pairs; kinds, origins and "
        f"confusions over a sample of {len(sample.kept):,} pairs."
    )
    pairs = f"{manifest.pairs.kept:,} pairs ({splits}) from {manifest.rows.kept:,} sentences"
    by = (
        f"by {escape(manifest.product)} {escape(manifest.version)}, configuration "
        f"<code>{manifest.fingerprint[:12]}</code>"
    )
    about = manifest.about
    stated = (about.title, about.description, about.contact and f"Contact: {about.contact}")
    sections = (
        f"<h1>{escape(name)}: a dataset of pairs</h1>",
        *(f"<p>{escape(text)}</p>" for text in stated if text),
        f"<p>{pairs}, {by}. {basis}</p>",
        "<h2>Pairs</h2><p>The right text is struck out. The wrong text follows in red.</p>",
        _make_browser(),
        _make_counts(manifest, sample.kept, edits),
        _make_rejects(manifest, sample),
        "<h2>Error rates</h2><p>Distance over length of the target, on average. A short "
        "sentence with one edit may already exceed a low rate, so the reachable rate can be higher "
        "than the wanted one.</p>" + write_table(RATE, list_rate_rows(manifest)),
        _make_confusions(len(replaced)),
    )
    rows_each = SHOWN // max(1, sample.kept["operator"].n_unique())
    examples = sample.kept.group_by("operator", maintain_order=True).head(rows_each)
    rejected = sample.rejected_pairs.group_by("reason", maintain_order=True).head(SHOWN_REJECTED)
    rows = [*_to_rows(examples.with_columns(reason=pl.lit("kept"))), *_to_rows(rejected)]
    data = {"pairs": rows, "confusions": replaced}
    return html.write_page(name, "\n".join(sections), Path(__file__), data, chinese=True)


def _make_counts(manifest: Manifest, pairs: pl.DataFrame, edits: pl.LazyFrame) -> str:
    """Return the section with tables of operators, kinds of edits, and origins."""
    operators = _add_shares(list(manifest.operators.items()))
    kind = pl.concat_str("operator", "kind", separator="/").alias("kind")
    origins = _add_shares(_count_values(pairs.lazy(), "origin"))
    more = len(origins) - 40
    return (
        "<h2>Counts</h2><div class='figures'>"
        + write_table(("operator", "pairs", "share"), operators)
        + write_table(("kind of edit", "edits", "share"), _add_shares(_count_values(edits, kind)))
        + write_table(("origin", "pairs", "share"), origins[:40])
        + "</div>"
        + (f"<p>… and {more:,} more origins.</p>" if more > 0 else "")
    )


def _count_values(frame: pl.LazyFrame, by: pl.Expr | str) -> list[tuple[str, int]]:
    """Return the values and how often each occurs, the most frequent first."""
    counted = frame.group_by(by).agg(pl.len()).collect()
    name = counted.columns[0]
    return list(counted.sort("len", name, descending=[True, False]).iter_rows())


def find_frequent_confusions(edits: pl.LazyFrame) -> list[tuple[str, str, str, int]]:
    """Return the most frequent replacements of a text by another.

    Each has the right and the wrong text, the operator that made most of them, and their number.
    """
    counted = (
        edits.filter((pl.col("target") != "") & (pl.col("source") != ""))
        .group_by("target", "source", "operator")
        .agg(pl.len())
        .sort("len", "operator", descending=[True, False])
        .group_by("target", "source", maintain_order=True)
        .agg(pl.col("operator").first(), pl.col("len").sum())
        .sort("len", "target", "source", descending=[True, False, False])
    )
    return counted.head(CONFUSIONS).collect().rows()


def _add_shares(counts: Sequence[tuple[str, int]]) -> list[tuple[str, str, str]]:
    total = sum(number for _, number in counts) or 1
    return [(name, f"{n:,}", format_percent(n / total, 1, " %")) for name, n in counts]


def _make_rejects(manifest: Manifest, sample: Sample) -> str:
    """Return the section on rejected rows and pairs, and on files that were not read."""
    counted = {"rows of the corpus": manifest.rows, "pairs": manifest.pairs}
    parts = [_reject_table(what, count, sample.examples()) for what, count in counted.items()]
    files = report_unread(manifest.inputs)
    parts += (f"<p>{escape(str(file))}</p>" for file in files[:_UNREAD])
    if len(files) > _UNREAD:
        parts.append(f"<p>… and {len(files) - _UNREAD:,} more files.</p>")
    return "\n".join(["<h2>Rejects, duplicates and contamination</h2>", *parts])


def _reject_table(what: str, counts: Counts, examples: Mapping[str, Sequence[str]]) -> str:
    """Return a paragraph that adds up, and a table of the reasons with their examples."""
    rejected = sum(counts.rejected.values())
    total = f"{counts.read:,} {what} read = {counts.kept:,} kept + {rejected:,} rejected."
    rows = []
    for reason, n in counts.rejected.items():
        lines = "<br>".join(escape(text[:80]) for text in examples.get(reason, ()))
        rows.append((reason, f"{n:,}", format_percent(n / counts.read, 2, " %"), Html(lines)))
    head = ("reason", what, "share", "examples")
    return f"<p>{total}</p>" + (write_table(head, rows, words=(3,)) if rows else "")


def _make_confusions(count: int) -> str:
    """Return the section in which `report.js` lists `count` confusions."""
    if not count:
        return "<h2>Confusions</h2><p>No text was replaced by another.</p>"
    return (
        f"<h2>Confusions</h2><p><label>Search the {count:,} most frequent confusions: "
        '<input id="confusion-text" type="search" lang="zh" autocomplete="off"></label> '
        '<span id="confusion-count" class="soft" role="status"></span></p>'
        '<ul id="confusion-list" class="chips" lang="zh"></ul>'
    )


def _make_browser() -> str:
    """Return the browser of the rows, with a filter for each of the fields of `report.js`."""
    fields = ("operator", "origin", "verdict")
    filters = "".join(f'<label>{name}<select id="pair-{name}"></select></label>' for name in fields)
    return (
        f'<div class="filters">{filters}<label>text<input id="pair-text" type="search" lang="zh" '
        'autocomplete="off"></label></div><p id="pair-count" role="status"></p>'
        '<div id="pair-list"></div><button id="pair-more" type="button">Show more</button>'
        '<noscript><p class="warning">This list needs JavaScript.</p></noscript>'
    )


def _to_rows(frame: pl.DataFrame) -> list[list[object]]:
    """Return pairs as rows of the browser: lists in the order that `report.js` reads."""
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


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a dataset; `whole` if the kept ones are all of them.

    `kept` has the columns of a shard, the others have those of the files in `rejects/`.
    """

    kept: pl.DataFrame
    rejected_pairs: pl.DataFrame
    rejected_rows: pl.DataFrame
    whole: bool

    def examples(self) -> dict[str, tuple[str, ...]]:
        """Return examples of rejected texts and pairs for each reason."""
        pairs = self.rejected_pairs.with_columns(text=pl.format("{} → {}", "target", "source"))
        examples: dict[str, tuple[str, ...]] = {}
        for rejected in (self.rejected_rows, pairs):
            grouped = rejected.group_by("reason", maintain_order=True)
            texts = grouped.agg(pl.col("text").head(EXAMPLES).alias("texts"))
            examples |= {reason: tuple(rows) for reason, rows in texts.iter_rows()}
        return examples


def draw_sample(dataset: Dataset, most: int) -> Sample:
    """Return the first `most` rows, and a quarter as many rejected rows and pairs.

    Rows are sorted by their ids, which are hashes, so the first ones represent the others. Raises
    VerificationError where a file is damaged.
    """
    manifest = dataset.manifest
    files = [record for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    rows = [path for path in rejects if Path(path).name.startswith("rows")]
    pairs = [path for path in rejects if path not in rows]
    return Sample(
        kept=_read_first(dataset.path, [file.path for file in files], PAIR, most),
        rejected_pairs=_read_first(dataset.path, pairs, REJECTED_PAIR, most // 4),
        rejected_rows=_read_first(dataset.path, rows, REJECTED_ROW, most // 4),
        whole=sum(file.rows for file in files) <= most,
    )


def _read_first(out: Path, paths: Sequence[str], schema: pa.Schema, most: int) -> pl.DataFrame:
    """Return at most so many rows of Parquet files."""
    if not paths:
        return pl.DataFrame(pl.from_arrow(schema.empty_table()))
    try:
        return pl.scan_parquet([out / path for path in paths], glob=False).head(most).collect()
    except pl.exceptions.PolarsError as error:
        raise VerificationError(f"{out}: damaged ({error}); run `cecdata verify`") from error
