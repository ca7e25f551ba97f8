"""Texts of paths, lists and data frames as a corpus; and, row by row, as sentences."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.read import cleaned
from cecdata.common.errors import InputError, UsageError, did_you_mean
from cecdata.config import Config
from cecdata.contamination.benchmarks import benchmarks
from cecdata.corpus.normalise import Normalised
from cecdata.corpus.rows import Rows, no_rejects
from cecdata.shards.schema import ROW

BATCH = 65_536  # rows that are worked on at a time
ORIGIN = "frame"  # the origin of rows without such a column

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller gives: exactly one of paths, texts, and a frame with the column of its texts.

    A frame is one of Polars, pandas or Arrow, or a dataset of the package `datasets`.
    """

    paths: Paths | None = None
    texts: Iterable[str | None] | None = None
    frame: Any = None
    column: str | None = None

    @contextmanager
    def as_corpus(self) -> Iterator[list[str]]:
        """Yield the names of a corpus of these texts; a list or frame is a file until the end.

        Raises UsageError for anything that cannot be read, and InputError where a frame has no such
        column.
        """
        given = [name for name in ("paths", "texts", "frame") if getattr(self, name) is not None]
        if len(given) != 1:
            raise UsageError(
                "give the texts by exactly one name: paths=…, texts=… or frame=…; given are "
                f"{', '.join(given) or 'none'}"
            )
        if self.column is not None and self.paths is None and self.texts is not None:
            raise UsageError("column names a column of a frame, and a list of texts has none")
        if self.paths is not None:
            paths = self.paths
            listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
            yield [os.fspath(path) for path in listed]
            return
        lazy = _of_texts(self.texts) if self.texts is not None else _lazy(self.frame)
        with TemporaryDirectory(prefix="cecdata-") as folder:
            path = Path(folder) / "frame.parquet"
            _chosen(lazy, self.column).sink_parquet(path)
            try:
                yield [str(path)]
            except InputError as error:
                raise InputError(str(error).replace(str(path), "the frame")) from error


def _of_texts(texts: Iterable[str | None]) -> pl.LazyFrame:
    if isinstance(texts, str):
        raise UsageError("texts must be a list of texts: texts=[text], or paths=name for a file")
    listed = list(texts)
    for place, text in enumerate(listed):
        if not (text is None or isinstance(text, str)):
            raise UsageError(f"texts[{place}] is a {type(text).__name__}, and must be a text")
    return pl.LazyFrame({"text": pl.Series(listed, dtype=pl.String)})


def _lazy(frame: Any) -> pl.LazyFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        frame = pl.from_arrow(frame)
    elif type(frame).__module__.split(".")[0] == "pandas":
        frame = pl.from_pandas(frame)
    elif hasattr(frame, "to_polars"):  # of the package `datasets`
        frame = frame.to_polars()
    if isinstance(frame, pl.Series):
        frame = frame.alias("text").to_frame()
    if isinstance(frame, pl.DataFrame):
        return frame.lazy()
    raise UsageError(
        f"frame is a {type(frame).__name__}, and must be a table of Polars, pandas or Arrow, or a "
        "dataset of `datasets`; a list of texts is texts=…, and a file paths=…"
    )


def _chosen(lazy: pl.LazyFrame, column: str | None) -> pl.LazyFrame:
    """Return the texts, origins and licences of a frame.

    `column` is by default `text`, or the only string column.
    """
    schema = lazy.collect_schema()
    strings = [name for name, kind in schema.items() if kind == pl.String]
    name = column or ("text" if "text" in strings or len(strings) != 1 else strings[0])
    if name not in strings:
        raise InputError(f"the frame has no string column {name!r}; {did_you_mean(name, strings)}")
    origin = pl.col("origin") if "origin" in strings and name != "origin" else pl.lit(ORIGIN)
    licences = [n for n in ("licence", "license") if n in strings and n != name][:1]
    more = [pl.col(n).alias("licence") for n in licences]
    return lazy.select(pl.col(name).alias("text"), origin.fill_null(ORIGIN).alias("origin"), *more)


def strings_of(series: pl.Series) -> pa.Array:
    """Return a series of text as an Arrow array of strings; nulls stay."""
    plain = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return plain.cast(pa.string())


def sentences(text: pa.Array, config: Config) -> Normalised:
    """Return the sentences of these texts, with `row` as their place in the array (from 0).

    Nulls, and texts that are no sentence by the configuration, are among the rejected rows. Raises
    UsageError for settings under which a row does not stand alone.
    """
    if config.split_sentences:
        raise UsageError(
            "split_sentences makes several sentences of a row: split the column beforehand, or "
            "build a dataset with `cecdata.build`"
        )
    if config.near_duplicates:
        raise UsageError(
            "near_duplicates compares sentences of several batches: filter the column beforehand, "
            "or build a dataset with `cecdata.build`"
        )
    rows = Rows(rows_of(text), no_rejects())
    return cleaned(rows, config, benchmarks(config.decontaminate))


def rows_of(text: pa.Array) -> pa.RecordBatch:
    """Return texts as rows of a corpus (schema ROW), with their place from 0; a null is empty."""
    count = len(text)
    nothing = pa.repeat("", count)
    whole = pc.fill_null(text, "") if text.null_count else text
    places = pa.array(np.arange(count, dtype=np.int64))
    columns = [whole, nothing, nothing, places, pa.nulls(count, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=ROW)
