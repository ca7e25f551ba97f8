"""The common calls of the Python API: perturb a sentence, build from texts, scan a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from cecdata.builds.again import pairs_of
from cecdata.builds.build import build as build_dataset
from cecdata.builds.output import copied
from cecdata.common.store import is_remote
from cecdata.config import load
from cecdata.frames.texts import Given, Paths
from cecdata.shards.manifest import SPLITS, Manifest
from cecdata.shards.reader import open_dataset

_SPLIT = pl.Enum(SPLITS)


def perturb(text: str, recipe: str = "paper", **settings: object) -> list[dict[str, Any]]:
    """Return the pairs of one sentence, calibrated on itself, as `cecdata preview` shows them.

    Each has the columns of a dataset (docs/reference/format.md). `settings` are those of a recipe,
    such as ``seed=7`` or ``copies=8``. Raises InputError where the text is no sentence.

    >>> import cecdata
    >>> pair = cecdata.perturb("他的病情已经好转。", recipe="realistic", seed=1)[0]
    >>> pair["target"], pair["source"] == pair["target"], pair["distance"]
    ('他的病情已经好转。', False, 1)
    """
    return pairs_of(text, load(recipe, **settings))


def build(
    *,
    paths: Paths | None = None,
    texts: Iterable[str | None] | None = None,
    frame: Any = None,
    column: str | None = None,
    out: str | os.PathLike[str] | None = None,
    recipe: str = "paper",
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    **settings: object,
) -> pl.DataFrame | Manifest:
    """Build pairs as `cecdata build` does, of paths, of a list of texts, or of a frame.

    `paths` are what the command takes; a frame is one of Polars, pandas or Arrow, or a dataset of
    the package `datasets`. `column` has its texts, by default `text` or the only string column; its
    columns `origin` and `licence` count, if it has them. With `out`, the pairs are written as a
    dataset to that folder or store, and its manifest is returned; without, the pairs are returned
    as a frame with a column `split`, the training pairs first. `settings` are those of a recipe.
    Raises UsageError for anything else than exactly one of the three.

    >>> import cecdata
    >>> frame = cecdata.build(texts=["他的病情已经好转。"], recipe="realistic", copies=2)
    >>> frame.columns[:4], len(frame)
    (['id', 'copy', 'source', 'target'], 2)
    """
    if paths is not None and column is not None:
        settings["text_column"] = column
    config = load(recipe, **settings)
    how: dict[str, Any] = {"workers": workers, "engine": engine, "overwrite": overwrite}
    with Given(paths, texts, frame, column).as_corpus() as corpus:
        if out is not None:
            place = str(out) if is_remote(out) else Path(out)
            return build_dataset(corpus, place, config, **how)
        with TemporaryDirectory(prefix="cecdata-") as folder:
            build_dataset(corpus, Path(folder) / "out", config, **how)
            return scan(Path(folder) / "out").collect()


def scan(out: str | os.PathLike[str], split: str | None = None) -> pl.LazyFrame:
    """Return the pairs of a finished dataset as a lazy frame, training pairs first.

    The columns are those of docs/reference/format.md with their types, and `split`. The files are
    first compared with the manifest and hashed. A dataset in a store, such as s3://bucket/out, is
    read from a local copy, which is updated first. Raises InputError if `out` is no dataset,
    VerificationError if it is damaged, and UsageError for an unknown split.
    """
    dataset = open_dataset(copied(str(out)) if is_remote(out) else Path(out))
    names = SPLITS if split is None else (split,)
    return pl.concat([dataset.scan(n).with_columns(split=pl.lit(n, _SPLIT)) for n in names])
