"""The counts of a dataset, or of a sample of it, by lazy Polars scans in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from cecdata.common.progress import step
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR

LENGTH_BIN = 10  # code points
COSINE_BIN = 0.05
PLACES = 10  # parts of a sentence in which the places of edits are counted
TOP = 20  # confusions listed
# what the tables count
_UNITS = {
    "splits": "pairs",
    "operators": "pairs",
    "origins": "pairs",
    "kinds": "edits",
    "lengths": f"pairs by characters of the target, in steps of {LENGTH_BIN}",
    "distances": "pairs by characters",
    "edits_of_pairs": "pairs by number of edits",
    "places": "edits by tenth of the target, from 0",
    "cosines": f"pairs by lowest cosine of a step of {COSINE_BIN}",
    "scored": "pairs with a cosine",
    "mean_edits": "per pair",
}


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
    """The counts of one dataset. Lengths in code points; keys of histograms are lower bounds."""

    splits: Mapping[str, int]
    operators: Mapping[str, int]  # pairs
    origins: Mapping[str, int]  # pairs
    kinds: Mapping[str, int]  # edits, as operator/kind
    lengths: Mapping[str, int]  # of targets, in steps of 10
    distances: Mapping[str, int]
    edits_of_pairs: Mapping[str, int]  # pairs by their number of edits
    places: Mapping[str, int]  # edits by the tenth of the sentence in which they are
    cosines: Mapping[str, int]  # scored pairs, in steps of 0.05
    scored: int
    edits: int
    mean_edits: float  # per pair
    confusions: tuple[Confusion, ...]  # the most frequent


def stats(out: str | Path) -> Stats:
    """Count the dataset at `out`, which must pass the quick check, a shard at a time."""
    dataset = open_dataset(out)
    splits = {split: dataset.rows(split) for split in dataset.manifest.outputs}

    def shards() -> Iterable[pl.LazyFrame]:
        for split in splits:
            for shard, rows in dataset.scan_shards(split):
                yield shard
                step("count", rows, sum(splits.values()))

    return count_pairs(shards(), splits)


def count_pairs(shards: Iterable[pl.LazyFrame], splits: Mapping[str, int], top: int = TOP) -> Stats:
    """Count shards of pairs one after the other."""
    names = list(_counts(pl.LazyFrame(pl.from_arrow(PAIR.empty_table()))))
    sums: list[pl.DataFrame] = []
    for shard in (pl.LazyFrame(pl.from_arrow(PAIR.empty_table())), *shards):
        parts = pl.collect_all(_counts(shard).values(), engine="streaming")
        sums = (
            [_add(pair_of_tables) for pair_of_tables in zip(sums, parts, strict=True)]
            if sums
            else parts
        )
    tables = dict(zip(names, sums, strict=True))
    total, edited = sum(splits.values()), int(tables["kinds"]["len"].sum())
    by_count = {name: _by_count(tables[name]) for name in ("operators", "origins", "kinds")}
    order = ("lengths", "distances", "edits_of_pairs", "places", "cosines")
    return Stats(
        splits=splits,
        **by_count,
        **{name: _in_order(tables[name]) for name in order},
        scored=int(tables["cosines"]["len"].sum()),
        edits=edited,
        mean_edits=edited / total if total else 0.0,
        confusions=_confusions(tables["confusions"], top),
    )


def text(counts: Stats) -> str:
    """Return the counts as tables for a terminal."""
    lines = []
    for name, value in asdict(counts).items():
        head = f"{name} ({_UNITS[name]})" if name in _UNITS else name
        if isinstance(value, dict):
            lines += [
                head,
                *(f"  {key:<28}{_write_number(of):>14}" for key, of in value.items()),
                "",
            ]
        elif not isinstance(value, tuple):
            lines += [f"{head:<30}{_write_number(value):>14}", ""]
    lines += ["most frequent confusions: target, source, count"]
    lines += (f"  {c.target or '∅'}\t{c.source or '∅'}\t{c.count:,}" for c in counts.confusions)
    return "\n".join(lines) + "\n"


def _write_number(number: float) -> str:
    return f"{number:.3f}" if isinstance(number, float) else f"{number:,}"


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
        "operators": _count(pairs, "operator"),
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


def _add(both: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the sum of two tables of counts."""
    *by, _ = both[1].columns
    return pl.concat(both).group_by(by).sum()


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
