"""The counts that a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cecdata.hanzi.characters import level, standard_characters
from cecdata.hanzi.lexicon import words
from cecdata.report.sample import Sample

if TYPE_CHECKING:
    import polars as pl

LENGTH_BIN = 10  # code points
COSINE_BIN = 0.05
PLACES = 10  # parts of a sentence in which the places of edits are counted
CONFUSIONS = 2_000
LEVELS = {1: "common (level 1)", 2: "less common (level 2)", 3: "rare (level 3)"}
EXAMPLES = 4  # of each reason


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
