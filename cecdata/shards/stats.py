"""The counts of pairs that the page of a dataset shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

LENGTH_BIN = 10  # code points
COSINE_BIN = 0.05
PLACES = 10  # parts of a sentence in which the places of edits are counted


@dataclass(frozen=True, slots=True)
class Confusion:
    """The number of times that a text was written as another, and its most frequent operator.

    Either text may be empty.
    """

    target: str
    source: str
    count: int
    operator: str


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts of some pairs. Lengths in code points; keys of histograms are lower bounds."""

    origins: Mapping[str, int]  # pairs
    kinds: Mapping[str, int]  # edits, as operator/kind
    lengths: Mapping[str, int]  # of targets, in steps of 10
    distances: Mapping[str, int]
    edits_of_pairs: Mapping[str, int]  # pairs by their number of edits
    places: Mapping[str, int]  # edits by the tenth of the sentence in which they are
    cosines: Mapping[str, int]  # scored pairs, in steps of 0.05
    confusions: tuple[Confusion, ...]  # the most frequent


def count_pairs(pairs: pl.DataFrame, top: int) -> Stats:
    """Count pairs; of the confusions the `top` most frequent."""
    lazy = _counts(pairs.lazy())
    tables = dict(zip(lazy, pl.collect_all(lazy.values()), strict=True))
    order = ("lengths", "distances", "edits_of_pairs", "places", "cosines")
    return Stats(
        origins=_by_count(tables["origins"]),
        kinds=_by_count(tables["kinds"]),
        **{name: _in_order(tables[name]) for name in order},
        confusions=_confusions(tables["confusions"], top),
    )


def _counts(pairs: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Return tables of counts of some pairs; the last column of each is `len`."""
    length = pl.col("target").str.len_chars()
    edits = (
        pairs.filter(pl.col("edits").list.len() > 0)
        .select(length.alias("length"), "edits")
        .explode("edits")
        .unnest("edits")
    )
    # An insertion after the last character has the place `length`.
    place = (pl.col("start") * PLACES // pl.col("length").clip(1)).clip(0, PLACES - 1)
    bins = ((pl.col("cosine") / COSINE_BIN).floor() * COSINE_BIN).round(2)
    return {
        "origins": _count(pairs, "origin"),
        "kinds": _count(edits, pl.concat_str("operator", "kind", separator="/").alias("kind")),
        "lengths": _count(pairs, (length // LENGTH_BIN * LENGTH_BIN).alias("length")),
        "distances": _count(pairs, "distance"),
        "edits_of_pairs": _count(pairs, pl.col("edits").list.len()),
        "places": _count(edits, place.alias("place")),
        "cosines": _count(pairs.drop_nulls("cosine"), bins),
        "confusions": _count(edits, "target", "source", "operator"),
    }


def _count(frame: pl.LazyFrame, *by: pl.Expr | str) -> pl.LazyFrame:
    return frame.group_by(*by).agg(pl.len())


def _by_count(frame: pl.DataFrame) -> dict[str, int]:
    name = frame.columns[0]
    ordered = frame.sort("len", name, descending=[True, False])
    return {str(key): int(count) for key, count in ordered.iter_rows()}


def _in_order(frame: pl.DataFrame) -> dict[str, int]:
    name = frame.columns[0]
    shown = "{:.2f}" if frame.schema[name].is_float() else "{}"
    return {shown.format(key): int(count) for key, count in frame.sort(name).iter_rows()}


def _confusions(frame: pl.DataFrame, top: int) -> tuple[Confusion, ...]:
    ranked = (
        frame.sort("len", "operator", descending=[True, False])
        .group_by("target", "source", maintain_order=True)
        .agg(pl.col("len").sum(), pl.col("operator").first())
        .sort("len", "target", "source", descending=[True, False, False])
    )
    return tuple(Confusion(*row) for row in ranked.head(top).iter_rows())
