"""Proofs of rows, a batch at a time: each finds the rows that break one rule.

They share no code with what made the rows: Polars applies the edits to whole columns, rapidfuzz
computes the distances, and xxhash the ids from the target's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import polars as pl

MIXED = "mixed"
UNCHANGED = "unchanged"

Mask = npt.NDArray[np.bool_]
# (targets, ids, copies) → the columns that the configuration gives: `source`, `operator`, `edits`
# and `held_out`, whether the sentence is in the validation split. Null: there is no such copy.
Rederive = Callable[[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int16]], pa.Table]

_COSINE_TOLERANCE = 1e-6  # one rounding to float32


def broken_rows(batch: pa.RecordBatch, threshold: float | None) -> Iterator[tuple[str, Mask]]:
    """Yield, for each rule, the name of its breach and the rows that break it."""
    import polars as pl

    rows = pl.DataFrame(pl.from_arrow(batch.select(["target", "source", "operator", "edits"])))
    edits = edits_of(rows)
    size = pl.col("text").str.len_chars()
    ordered = pl.col("before") <= pl.col("start"), pl.col("start") <= pl.col("end")
    misplaced = _rows_with(edits, ~(ordered[0] & ordered[1] & (pl.col("end") <= size)), len(rows))
    yield "edits out of order, overlapping or outside the target", misplaced
    if misplaced.any():
        return  # nothing below can be computed
    quoted = pl.col("text").str.slice(pl.col("start"), pl.col("end") - pl.col("start"))
    yield (
        "edits that do not quote their target",
        _rows_with(edits, quoted != pl.col("target"), len(rows)),
    )
    carried_out = rows.with_row_index("row").join(_carried_out(edits), on="row", how="left")
    differs = carried_out["written"].fill_null(rows["target"]) != rows["source"]
    yield "edits that do not lead to the source", differs.to_numpy()
    made_by = carried_out["made_by"].fill_null(UNCHANGED)
    yield "an operator that is not that of the edits", (made_by != rows["operator"]).to_numpy()
    unmarked = (rows["source"] == rows["target"]) & (rows["operator"] != UNCHANGED)
    yield "a source like its target, though not `unchanged`", unmarked.to_numpy()
    yield "a distance that rapidfuzz does not confirm", _wrong_distance(batch)
    yield "an id that is not the hash of the target", wrong_id(batch)
    yield "a cosine out of range or below the threshold", _wrong_cosine(batch, threshold)


def edits_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of edits: each edit's `row`, that row's target as `text`, and its own columns.

    `before` is the end of the row's previous edit, or 0.
    """
    import polars as pl

    edits = (
        rows.select("edits", text="target")
        .with_row_index("row")
        .filter(pl.col("edits").list.len() > 0)
        .explode("edits")
        .unnest("edits")
    )
    same_row = pl.col("row") == pl.col("row").shift(1)
    return edits.with_columns(before=pl.when(same_row).then(pl.col("end").shift(1)).otherwise(0))


def _carried_out(edits: pl.DataFrame) -> pl.DataFrame:
    """Return, for each row with edits, the target with the edits applied, and their operator."""
    import polars as pl

    kept = pl.col("text").str.slice(pl.col("before"), pl.col("start") - pl.col("before"))
    rest = pl.col("text").last().str.slice(pl.col("end").last())
    several = pl.col("operator").n_unique() > 1
    return edits.group_by("row").agg(
        written=(kept + pl.col("source")).str.join() + rest,
        made_by=pl.when(several).then(pl.lit(MIXED)).otherwise(pl.col("operator").first()),
    )


def _rows_with(edits: pl.DataFrame, bad: pl.Expr, rows: int) -> Mask:
    """Return [rows] whether any edit of the row is bad."""
    mask = np.zeros(rows, np.bool_)
    mask[edits.filter(bad)["row"].to_numpy()] = True
    return mask


def not_rederived(
    batch: pa.RecordBatch, rederive: Rederive, *, held_out: bool
) -> Iterator[tuple[str, Mask]]:
    """Yield, for each column, the rows in which it differs from what (seed, id, copy) gives."""
    import polars as pl

    rows = pl.DataFrame(pl.from_arrow(batch))
    again = pl.DataFrame(
        pl.from_arrow(rederive(batch["target"], batch["id"].to_numpy(), batch["copy"].to_numpy()))
    )
    for name in ("a source", "an operator", "edits"):
        column = name.split()[-1]
        differs = rows[column].ne_missing(again[column])
        yield f"{name} that (seed, id, copy) does not give", differs.to_numpy()
    yield (
        "a sentence that belongs to the other split",
        again["held_out"].ne_missing(pl.Series([held_out])).to_numpy(),
    )


def _wrong_distance(batch: pa.RecordBatch) -> Mask:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not batch.num_rows:
        return np.zeros(0, np.bool_)
    sources, targets = batch["source"].to_pylist(), batch["target"].to_pylist()
    distances = cpdist(sources, targets, scorer=Levenshtein.distance, dtype=np.int32, workers=1)
    return np.asarray(distances != batch["distance"].to_numpy())


def wrong_id(batch: pa.RecordBatch, text: str = "target") -> Mask:
    """Return which rows have an id that is not the hash of their text."""
    import xxhash

    ids = batch["id"].to_numpy().view(np.uint64)
    targets = batch[text].cast(pa.binary()).to_pylist()
    hash_of = xxhash.xxh3_64_intdigest
    hashes = np.fromiter(map(hash_of, targets), np.uint64, len(targets))
    return np.asarray(hashes != ids)


def _wrong_cosine(batch: pa.RecordBatch, threshold: float | None) -> Mask:
    cosine = batch["cosine"].to_numpy(zero_copy_only=False)
    scored = batch["cosine"].is_valid().to_numpy(zero_copy_only=False)
    low = -1.0 if threshold is None else threshold
    inside = (cosine >= low - _COSINE_TOLERANCE) & (cosine <= 1 + _COSINE_TOLERANCE)
    return np.asarray(scored & ~inside)
