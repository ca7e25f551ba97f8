"""Pairs that are drawn anew in each epoch from a pool of sentences, without a dataset of pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cecdata.builds.build import surveyed
from cecdata.builds.corrupt import corrupted
from cecdata.builds.distinct import rows_of
from cecdata.common.errors import InputError, UsageError
from cecdata.config import from_manifest, load
from cecdata.frames.rates import Rates, engine
from cecdata.frames.texts import Given
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, read_manifest
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR, SENTENCE

COLUMNS = ("id", "source", "target", "operator", "distance")
_BLOCK = 4_096  # sentences that one worker perturbs at a time


class Fresh:
    """One pair of each sentence of a pool in each epoch, in an order drawn for the epoch.

    `pool` is a folder that `cecdata pool` or `cecdata build` wrote; of a dataset of pairs, the
    training sentences and the rates are used. Without one, `texts` or `frame` with its `column` are
    those of `cecdata.build`. The pairs of epoch e are those of a build with the seed + 1 + e and
    one copy, without the cosine filter. `settings` are those of a recipe. Raises InputError if
    there is no sentence.

    >>> fresh = Fresh(texts=["他的病情已经好转。", "明天上午九点开会。"], recipe="realistic")
    >>> len(fresh), [len(table) for table in fresh.tables(epoch=0)]
    (2, [2])
    """

    def __init__(
        self,
        pool: str | os.PathLike[str] | None = None,
        recipe: str | None = None,
        *,
        texts: Iterable[str | None] | None = None,
        frame: Any = None,
        column: str | None = None,
        **settings: object,
    ) -> None:
        given, frozen = Given(None, texts, frame, column), None
        if pool is not None:
            read, frozen = _opened(Path(pool))
            given = replace(given, frame=read) if frame is None else replace(given, paths=pool)
        config = load(recipe or "paper", **settings)
        if frozen is not None:
            config = replace(from_manifest(frozen.configuration), **_PLAIN)
        with given.as_corpus() as corpus, surveyed(corpus, config) as (found, place):
            whole = rows_of(place, found.pool.buckets, 0, found.pool.sentences)
        self._sentences = pa.Table.from_batches([whole.select(SENTENCE.names)], SENTENCE)
        if frozen is None:
            frozen = Rates(config.as_dict(), found.histogram.rates(), found.pool.sentences)
        asked = {"recipe": recipe, **settings, "copies": 1}
        made, self._count = engine(frozen, asked)
        chosen = tuple(name for name in made.config.filters if name != "cosine")
        self._engine, _ = engine(frozen, {**settings, "copies": 1, "filters": chosen})

    def __len__(self) -> int:
        """Return the number of sentences; an epoch has fewer pairs if a sentence yields none."""
        return len(self._sentences)

    def tables(
        self, epoch: int, part: int = 0, parts: int = 1, skip: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the pairs of an epoch for reader `part` of `parts`, some at a time.

        The reader's first `skip` pairs are left out. The columns are those of `COLUMNS`. Raises
        UsageError for a part that does not exist.
        """
        if not 0 <= part < parts:
            raise UsageError(f"part {part} of {parts}: it must be from 0 to {parts - 1}")
        drawn = self._engine.fresh(epoch)
        seed = self._engine.config.seed
        order = np.random.default_rng((seed, epoch)).permutation(len(self._sentences))
        for start in range(part * _BLOCK, len(order), parts * _BLOCK):
            rows = self._sentences.take(pa.array(order[start : start + _BLOCK]))
            batch = rows.combine_chunks().to_batches()[0]
            table = corrupted(drawn, batch, self._count)[0].table.select(COLUMNS)
            left = table.slice(min(skip, len(table)))
            skip -= len(table) - len(left)
            if len(left):
                yield left.cast(pa.schema([PAIR.field(name) for name in COLUMNS]))

    def rows(
        self, epoch: int, part: int = 0, parts: int = 1, skip: int = 0
    ) -> Iterator[dict[str, object]]:
        """Yield the same pairs as dictionaries."""
        for table in self.tables(epoch, part, parts, skip):
            columns = [column.to_pylist() for column in table.columns]
            for values in zip(*columns, strict=True):
                yield dict(zip(COLUMNS, values, strict=True))


# The settings of a dataset that its own rows are not read with.
_PLAIN: dict[str, Any] = {
    "format": None, "encoding": "auto", "text_column": None, "origin_column": None,
    "licence_column": None, "limit": None, "split_sentences": False, "decontaminate": (),
}  # fmt: skip


def _opened(path: Path) -> tuple[pl.LazyFrame, Rates | None]:
    if not (path / MANIFEST).is_file():
        raise InputError(f"{path}: no folder that `cecdata pool` or `cecdata build` wrote")
    manifest = read_manifest(path, PAIRS, POOL)
    if manifest.kind == POOL:
        files = [path.absolute() / file.path for file in manifest.outputs["train"]]
        return pl.scan_parquet(files, glob=False), None
    targets = open_dataset(path).scan("train").unique("id")
    return targets.select(text="target", origin="origin"), Rates.of_manifest(manifest)
