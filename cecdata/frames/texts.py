"""Texts of data frames as Arrow arrays, and as the sentences that a build makes from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.read import cleaned
from cecdata.common.errors import InputError, UsageError, did_you_mean
from cecdata.config import Config
from cecdata.contamination.lists import benchmarks
from cecdata.corpus.normalise import Normalised
from cecdata.corpus.rows import Rows, no_rejects
from cecdata.shards.schema import ROW

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pl.Series | pa.Table | Sequence[str]"
BATCH = 65_536  # rows that are worked on at a time
ORIGIN = "frame"  # the origin of rows in a frame without such a column


def batches(frame: Frame, column: str | None = None) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the texts and origins of a frame, `BATCH` rows at a time; a LazyFrame is streamed.

    `column` is by default `text`, or the only string column. Raises InputError if there is no such
    column.
    """
    lazy = _lazy(frame)
    schema = lazy.collect_schema()
    strings = [name for name, kind in schema.items() if kind == pl.String]
    name = column or ("text" if "text" in strings or len(strings) != 1 else strings[0])
    if name not in strings:
        raise InputError(f"the frame has no string column {name!r}; {did_you_mean(name, strings)}")
    origin = pl.col("origin") if "origin" in strings and name != "origin" else pl.lit(ORIGIN)
    chosen = lazy.select(text=pl.col(name), origin=origin.fill_null(ORIGIN))
    for part in chosen.collect_batches(chunk_size=BATCH, maintain_order=True):
        for rows in part.iter_slices(BATCH):
            yield strings_of(rows["text"]), strings_of(rows["origin"])


def _lazy(frame: Frame) -> pl.LazyFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame
    if isinstance(frame, pl.DataFrame):
        return frame.lazy()
    if isinstance(frame, pa.Table):
        table = pl.from_arrow(frame)
        assert isinstance(table, pl.DataFrame)
        return table.lazy()
    series = frame if isinstance(frame, pl.Series) else pl.Series(frame, dtype=pl.String)
    return series.alias("text").to_frame().lazy()


def strings_of(series: pl.Series) -> pa.Array:
    """Return a series of text as an Arrow array of strings; nulls stay."""
    plain = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return plain.cast(pa.string())


def sentences(text: pa.Array, origin: pa.Array | None, config: Config) -> Normalised:
    """Return the sentences of these texts, with `row` as their place in the array (from 0).

    Nulls, and texts that are no sentence by the configuration, are among the rejected rows. Raises
    UsageError for settings under which a row does not stand alone.
    """
    if config.split_sentences:
        raise UsageError(
            "split_sentences makes several sentences of a row: split the column beforehand, or "
            "build from a file with `cecdata build --split-sentences`"
        )
    if config.near_duplicates:
        raise UsageError(
            "near_duplicates compares sentences of several batches: filter the column beforehand, "
            "or build from a file with `cecdata build --near-duplicates`"
        )
    rows = Rows(rows_of(text, origin), no_rejects())
    return cleaned(rows, config, benchmarks(config.decontaminate))


def rows_of(text: pa.Array, origin: pa.Array | None = None) -> pa.RecordBatch:
    """Return texts as rows of a corpus (schema ROW), with their place from 0; a null is empty."""
    count = len(text)
    nothing = pa.repeat("", count)
    whole = pc.fill_null(text, "") if text.null_count else text
    places = pa.array(np.arange(count, dtype=np.int64))
    named = nothing if origin is None else origin
    columns = [whole, named, nothing, places, pa.nulls(count, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=ROW)
