"""The common calls of the Python API: perturb a sentence, build from a frame, scan a dataset."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.builds.again import pairs_of
from cecdata.builds.build import build as build_dataset
from cecdata.builds.corrupt import pairs_of_chunk
from cecdata.builds.output import copied
from cecdata.common.store import is_remote
from cecdata.config import load
from cecdata.frames.rates import distinct_sentences, engine, rates
from cecdata.frames.texts import Frame, batches
from cecdata.shards.manifest import SPLITS, Manifest
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR


def perturb(text: str, recipe: str = "paper", **settings: object) -> list[dict[str, Any]]:
    """Return the pairs of one sentence, calibrated on itself, as `cecdata preview` shows them.

    Each has the columns of a dataset (docs/format.md). `settings` are those of a recipe, such as
    ``seed=7`` or ``copies=8``. Raises InputError where the text is no sentence.

    >>> import cecdata
    >>> pair = cecdata.perturb("他的病情已经好转。", recipe="realistic", seed=1)[0]
    >>> pair["target"], pair["source"] == pair["target"], pair["distance"]
    ('他的病情已经好转。', False, 1)
    """
    return pairs_of(text, load(recipe, **settings))


def build(
    frame: Frame,
    out: str | os.PathLike[str] | None = None,
    recipe: str = "paper",
    *,
    column: str | None = None,
    workers: int = 1,
    **settings: object,
) -> pl.DataFrame | Manifest:
    """Return the pairs that `cecdata build` makes of a column, with a column `split`.

    The frame is in memory and has the training pairs first. With `out`, the pairs are written as a
    dataset to that folder, and its manifest is returned. `frame`, `column` and `settings` are those
    of `cecdata.rates`; origins come from a column `origin`, if there is one.

    >>> import cecdata
    >>> frame = cecdata.build(["他的病情已经好转。"], recipe="realistic", copies=2)
    >>> frame.columns[:4], len(frame)
    (['id', 'copy', 'source', 'target'], 2)
    """
    if out is not None:
        return _written(frame, Path(out), recipe, column, workers, settings)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()  # its rows are read twice
    made, count = engine(rates(frame, recipe, column=column, **settings), {})
    parts: dict[str, list[pa.Table]] = {name: [] for name in SPLITS}
    for sentences in distinct_sentences(frame, column, made.config):
        for split, kept, _ in pairs_of_chunk(made, sentences, count):
            parts[split].append(kept.table.cast(PAIR))
    return pl.concat([_typed(pa.concat_tables(parts[name]), name) for name in SPLITS])


def _typed(table: pa.Table, split: str) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(split=pl.lit(split, _SPLIT))


_SPLIT = pl.Enum(SPLITS)


def scan(out: str | os.PathLike[str], split: str | None = None) -> pl.LazyFrame:
    """Return the pairs of a finished dataset as a lazy frame, training pairs first.

    The columns are those of docs/format.md with their types, and `split`. The files are first
    compared with the manifest and hashed. A dataset in a store, such as s3://bucket/out, is read
    from a local copy, which is updated first. Raises InputError if `out` is no dataset,
    VerificationError if it is damaged, and UsageError for an unknown split.
    """
    dataset = open_dataset(copied(str(out)) if is_remote(out) else Path(out))
    names = SPLITS if split is None else (split,)
    return pl.concat([dataset.scan(n).with_columns(split=pl.lit(n, _SPLIT)) for n in names])


def _written(
    frame: Frame,
    out: Path,
    recipe: str,
    column: str | None,
    workers: int,
    settings: dict[str, object],
) -> Manifest:
    """Build a dataset in `out` from a frame, by way of a temporary Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.parquet"
        schema = pa.schema([("text", pa.string()), ("origin", pa.string())])
        with pq.ParquetWriter(path, schema) as writer:
            for text, origin in batches(frame, column):
                writer.write_table(pa.table([text, origin], schema=schema))
        config = load(recipe, **{**settings, "text_column": "text", "origin_column": "origin"})
        return build_dataset([str(path)], out, config, workers=workers)
