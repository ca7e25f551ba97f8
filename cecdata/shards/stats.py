"""The counts of a dataset, by lazy Polars scans in constant memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.codec import Json, encode
from cecdata.common.progress import Advance, silent
from cecdata.shards.reader import Dataset, open_dataset
from cecdata.shards.schema import PAIR

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Group

LENGTH_BIN = 10  # code points
TOP = 20  # confusions listed
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Confusion:
    """The number of times that a text was written as another; either may be empty."""

    target: str
    source: str
    count: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts of one dataset. Lengths in code points; keys of histograms are lower bounds."""

    splits: Mapping[str, int]
    operators: Mapping[str, int]  # pairs
    kinds: Mapping[str, int]  # edits, as operator/kind
    lengths: Mapping[str, int]  # of targets, in steps of 10
    distances: Mapping[str, int]
    cosine: Mapping[str, float]  # quantile → value; empty if nothing was scored
    scored: int
    edits: int
    mean_edits: float  # per pair
    confusions: tuple[Confusion, ...]  # the most frequent

    def as_dict(self) -> dict[str, Json]:
        """Return the counts as JSON values."""
        document = encode(self)
        assert isinstance(document, dict)
        return document


def stats(out: str | Path, progress: Advance = silent) -> Stats:
    """Count the dataset at `out`, which must pass the quick check, a shard at a time."""
    import polars as pl

    dataset = open_dataset(out)
    splits = {split: dataset.rows(split) for split in dataset.manifest.outputs}
    none = pl.LazyFrame(pl.from_arrow(PAIR.empty_table()))
    counts = pl.collect_all(_counts(none))
    for split in splits:
        for shard, rows in dataset.scan_shards(split):
            parts = pl.collect_all(_counts(shard), engine="streaming")
            counts = [_added(both) for both in zip(counts, parts, strict=True)]
            progress("count", rows, sum(splits.values()))
    operators, kinds, lengths, distances, confusions = counts
    confusions = confusions.sort("len", "target", "source", descending=[True, False, False])
    # quantiles of shards cannot be combined
    cosine = (
        _all_pairs(dataset)
        .select(pl.col("cosine").count().alias("scored"), *map(_quantile, QUANTILES))
        .collect(engine="streaming")
    )
    total, edited = sum(splits.values()), int(kinds["len"].sum())
    scored = int(cosine["scored"][0])
    return Stats(
        splits=splits,
        operators=_by_count(operators),
        kinds=_by_count(kinds),
        lengths=_in_order(lengths),
        distances=_in_order(distances),
        cosine={f"{q:g}": float(cosine[f"{q:g}"][0]) for q in QUANTILES} if scored else {},
        scored=scored,
        edits=edited,
        mean_edits=edited / total if total else 0.0,
        confusions=tuple(Confusion(*row) for row in confusions.head(TOP).iter_rows()),
    )


def renderable(counted: Stats) -> Group:
    """Return tables for a terminal: `rich.print(renderable(stats(out)))`."""
    from rich.console import Group
    from rich.table import Table

    def histogram(title: str, counts: Mapping[str, int]) -> Table:
        grid = Table("", "count", "share", title=title, title_justify="left")
        total = sum(counts.values()) or 1
        for name, count in counts.items():
            grid.add_row(name, f"{count:,}", f"{count / total:.1%}")
        return grid

    cosine = Table("quantile", "cosine", title=f"cosine of {counted.scored:,} pairs")
    for name, value in counted.cosine.items():
        cosine.add_row(name, f"{value:.3f}")
    top = Table("target", "source", "count", title="most frequent confusions")
    for c in counted.confusions:
        top.add_row(c.target or "∅", c.source or "∅", f"{c.count:,}")
    return Group(
        histogram("pairs by split", counted.splits),
        histogram("pairs by operator", counted.operators),
        histogram(f"edits by kind ({counted.mean_edits:.2f} a pair)", counted.kinds),
        histogram("pairs by length of the target", _ranges(counted.lengths)),
        histogram("pairs by distance", counted.distances),
        *([cosine] if counted.scored else []),
        top,
    )


def _counts(pairs: pl.LazyFrame) -> list[pl.LazyFrame]:
    """Return the counts of some pairs: operators, kinds, lengths, distances, confusions."""
    import polars as pl

    edits = (
        pairs.filter(pl.col("edits").list.len() > 0)
        .select(pl.col("edits").explode())
        .unnest("edits")
        .select("target", "source", pl.concat_str("operator", "kind", separator="/").alias("kind"))
    )
    length = (pl.col("target").str.len_chars() // LENGTH_BIN * LENGTH_BIN).alias("length")
    return [
        _count(pairs, pl.col("operator")),
        _count(edits, pl.col("kind")),
        _count(pairs, length),
        _count(pairs, pl.col("distance")),
        _count(edits, pl.col("target"), pl.col("source")),
    ]


def _added(both: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the sum of two tables of counts; their last column is `len`."""
    import polars as pl

    *by, _ = both[1].columns
    return pl.concat(both).group_by(by).sum()


def _ranges(lengths: Mapping[str, int]) -> dict[str, int]:
    return {f"{low}–{int(low) + LENGTH_BIN - 1}": count for low, count in lengths.items()}


def _all_pairs(dataset: Dataset) -> pl.LazyFrame:
    import polars as pl

    return pl.concat([dataset.scan(split) for split in dataset.manifest.outputs])


def _count(frame: pl.LazyFrame, *by: pl.Expr) -> pl.LazyFrame:
    import polars as pl

    return frame.group_by(*by).agg(pl.len())


def _quantile(q: float) -> pl.Expr:
    import polars as pl

    return pl.col("cosine").quantile(q, interpolation="nearest").alias(f"{q:g}")


def _by_count(frame: pl.DataFrame) -> dict[str, int]:
    name = frame.columns[0]
    ordered = frame.sort("len", name, descending=[True, False])
    return {str(key): int(count) for key, count in ordered.iter_rows()}


def _in_order(frame: pl.DataFrame) -> dict[str, int]:
    return {str(key): int(count) for key, count in frame.sort(frame.columns[0]).iter_rows()}
