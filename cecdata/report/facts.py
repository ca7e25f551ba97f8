"""A sample of a dataset, kept and rejected rows, and the counts that a report shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.errors import VerificationError
from cecdata.common.progress import Advance, silent
from cecdata.hanzi.characters import level, standard_characters
from cecdata.hanzi.lexicon import words
from cecdata.shards.reader import Dataset
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR, REJECTED_ROW, as_current

if TYPE_CHECKING:
    import polars as pl

LENGTH_BIN = 10  # code points
COSINE_BIN = 0.05
PLACES = 10  # parts of a sentence in which the places of edits are counted
CONFUSIONS = 2_000
LEVELS = {1: "common (level 1)", 2: "less common (level 2)", 3: "rare (level 3)"}
EXAMPLES = 4  # of each reason
# Row groups from which pairs are taken: neighbouring sentences of a corpus are similar, so one
# group would not represent the others.
GROUPS = 32


@dataclass(frozen=True, slots=True)
class Sample:
    """Pairs of a dataset; `whole` if they are all of them.

    `pairs` has the columns of a shard, `rejected_pairs` and `rejected_rows` those of the files in
    `rejects/`.
    """

    pairs: pl.DataFrame
    rejected_pairs: pl.DataFrame
    rejected_rows: pl.DataFrame
    whole: bool


@dataclass(frozen=True, slots=True)
class PoolSample:
    """Sentences of a pool and rejected rows, with the columns of their files."""

    sentences: pl.DataFrame
    rejected_rows: pl.DataFrame


def draw_sentences(dataset: Dataset, most: int, progress: Advance = silent) -> PoolSample:
    """Return at most about `most` sentences of a pool, the same ones on every call."""
    manifest = dataset.manifest
    shards = [record.path for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    return PoolSample(
        _rows(dataset.path, shards, POOLED, most, manifest.fingerprint, progress),
        _rows(dataset.path, rejects, REJECTED_ROW, most // 4, manifest.fingerprint),
    )


def draw(dataset: Dataset, most: int, progress: Advance = silent) -> Sample:
    """Return at most about `most` pairs of up to 32 row groups, the same ones on every call."""
    manifest = dataset.manifest
    shards = [record.path for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    total = sum(record.rows for records in manifest.outputs.values() for record in records)
    rows = [path for path in rejects if Path(path).name.startswith("rows")]
    pairs = [path for path in rejects if path not in rows]
    seed = manifest.fingerprint
    return Sample(
        pairs=_rows(dataset.path, shards, PAIR, most, seed, progress),
        rejected_pairs=_rows(dataset.path, pairs, REJECTED_PAIR, most // 4, seed),
        rejected_rows=_rows(dataset.path, rows, REJECTED_ROW, most // 4, seed),
        whole=total <= most,
    )


def _rows(
    out: Path,
    paths: Sequence[str],
    schema: pa.Schema,
    most: int,
    seed: str,
    progress: Advance = silent,
) -> pl.DataFrame:
    import polars as pl

    random = Random(seed)
    groups = [(path, group) for path in paths for group in range(_groups(out / path))]
    if len(groups) > GROUPS:
        groups = sorted(random.sample(groups, GROUPS))
    tables = []
    for path, group in groups:
        tables.append(_read(out / path, group, schema))
        progress("row groups", 1, len(groups))
    total = sum(map(len, tables))
    if total > most:
        tables = [
            table.take(sorted(random.sample(range(len(table)), len(table) * most // total)))
            for table in tables
        ]
    frame = pl.from_arrow(pa.concat_tables([schema.empty_table(), *tables]))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _groups(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(file.num_row_groups)


def _read(path: Path, group: int, schema: pa.Schema) -> pa.Table:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read_row_group(group)
    except (pa.ArrowException, OSError) as error:
        raise VerificationError(f"{path}: damaged ({error}); see `cecdata verify`") from error
    batches = [as_current(batch, schema.names) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, batches[0].schema if batches else schema)


@dataclass(frozen=True, slots=True)
class Confusion:
    """The number of times that `target` was written as `source`, and its most frequent operator."""

    target: str
    source: str
    operator: str
    count: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of `all` characters or words, of those in the targets, and of those perturbed."""

    name: str
    seen: int
    perturbed: int
    all: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts over the pairs of a sample; keys of histograms are lower bounds."""

    pairs: int
    edits: int
    kinds: Mapping[str, int]  # edits, as operator/kind
    origins: Mapping[str, int]  # pairs
    histograms: Mapping[str, Mapping[str, int]]  # title → bin → count
    confusions: tuple[Confusion, ...]  # the most frequent first
    coverage: tuple[Coverage, ...]
    reasons: Mapping[str, tuple[str, ...]]  # reason → examples


def count(sample: Sample) -> Facts:
    """Return the counts of a sample."""
    import polars as pl

    pairs = sample.pairs
    edits = (
        pairs.select("target", "edits")
        .with_columns(length=pl.col("target").str.len_chars())
        .select("length", "edits")
        .explode("edits")
        .drop_nulls("edits")
        .unnest("edits")
    )
    kind = pl.concat_str("operator", "kind", separator="/")
    confusions = (
        edits.filter(pl.col("target") != "", pl.col("source") != "")
        .group_by("target", "source")
        .agg(pl.len().alias("count"), pl.col("operator").mode().sort().first())
        .sort("count", "target", "source", descending=[True, False, False])
        .head(CONFUSIONS)
    )
    return Facts(
        pairs=len(pairs),
        edits=len(edits),
        kinds=_by_count(edits.select(kind)),
        origins=_by_count(pairs.select("origin")),
        histograms=_histograms(pairs, edits),
        confusions=tuple(
            Confusion(*row)
            for row in confusions.select("target", "source", "operator", "count").iter_rows()
        ),
        coverage=_coverage(pairs, edits),
        reasons=_reasons(sample),
    )


def _histograms(pairs: pl.DataFrame, edits: pl.DataFrame) -> dict[str, dict[str, int]]:
    import polars as pl

    length = pl.col("target").str.len_chars() // LENGTH_BIN * LENGTH_BIN
    # An insertion after the last character has the place `length`.
    place = (pl.col("start") * PLACES // pl.col("length").clip(1)).clip(0, PLACES - 1)
    columns = {
        "Levenshtein distance": pairs.select("distance"),
        "Edits in a sentence": pairs.select(pl.col("edits").list.len()),
        "Length of the target, ten characters to a bar": pairs.select(length),
        "Place of an edit, in tenths of the sentence": edits.select(place),
    }
    histograms = {title: _in_order(column) for title, column in columns.items()}
    cosine = pairs.select((pl.col("cosine") / COSINE_BIN).floor() * COSINE_BIN).drop_nulls()
    if len(cosine):
        bins = _in_order(cosine.select(pl.col("cosine").round(2)))
        histograms["Cosine of source and target"] = {f"{float(b):.2f}": n for b, n in bins.items()}
    return histograms


def _coverage(pairs: pl.DataFrame, edits: pl.DataFrame) -> tuple[Coverage, ...]:
    texts = pairs["target"].unique()
    seen = set("".join(texts))
    changed = set("".join(edits["target"].unique()))
    rows = []
    for grade, name in LEVELS.items():
        of_level = {c for c in standard_characters() if level(c) == grade}
        rows.append(
            Coverage(
                f"characters, {name}", len(of_level & seen), len(of_level & changed), len(of_level)
            )
        )
    lexicon = set(words(2).texts)
    bigrams = {text[i : i + 2] for text in texts for i in range(len(text) - 1)}
    spans = {text for text in edits["target"].unique() if len(text) == 2}
    rows.append(
        Coverage(
            "words of two characters", len(lexicon & bigrams), len(lexicon & spans), len(lexicon)
        )
    )
    return tuple(rows)


def _reasons(sample: Sample) -> dict[str, tuple[str, ...]]:
    import polars as pl

    pairs = sample.rejected_pairs.with_columns(pair=pl.format("{} → {}", "target", "source"))
    return examples_by_reason(sample.rejected_rows, "text") | examples_by_reason(pairs, "pair")


def examples_by_reason(rejected: pl.DataFrame, column: str) -> dict[str, tuple[str, ...]]:
    """Return the first texts of a column for each value of the column `reason`."""
    import polars as pl

    grouped = rejected.group_by("reason", maintain_order=True)
    texts = grouped.agg(pl.col(column).head(EXAMPLES).alias("t"))
    return {reason: tuple(examples) for reason, examples in texts.iter_rows()}


def _by_count(column: pl.DataFrame) -> dict[str, int]:
    series = column.to_series()
    ordered = series.value_counts().sort("count", series.name, descending=[True, False])
    return {str(key): int(number) for key, number in ordered.iter_rows()}


def _in_order(column: pl.DataFrame) -> dict[str, int]:
    series = column.to_series()
    return {str(key): int(n) for key, n in series.value_counts().sort(series.name).iter_rows()}
