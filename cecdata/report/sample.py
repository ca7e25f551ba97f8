"""A sample of a dataset's pairs, kept and rejected, without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.errors import VerificationError
from cecdata.common.progress import Advance, silent
from cecdata.shards.reader import Dataset
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR, REJECTED_ROW, as_current

if TYPE_CHECKING:
    import polars as pl

# Row groups from which pairs are taken: neighbouring sentences of a corpus are similar, so one
# group would not represent the others.
GROUPS = 32


@dataclass(frozen=True, slots=True)
class Sample:
    """Pairs of a dataset; `whole` if they are all of them.

    `pairs` has the columns of a shard, `rejected_pairs` and `rejected_rows` those of the files in
    `rejects/`.
    """

    pairs: pl.DataFrame
    rejected_pairs: pl.DataFrame
    rejected_rows: pl.DataFrame
    whole: bool


@dataclass(frozen=True, slots=True)
class PoolSample:
    """Sentences of a pool and rejected rows, with the columns of their files."""

    sentences: pl.DataFrame
    rejected_rows: pl.DataFrame


def draw_sentences(dataset: Dataset, most: int, progress: Advance = silent) -> PoolSample:
    """Return at most about `most` sentences of a pool, the same ones on every call."""
    manifest = dataset.manifest
    shards = [record.path for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    return PoolSample(
        _rows(dataset.path, shards, POOLED, most, manifest.fingerprint, progress),
        _rows(dataset.path, rejects, REJECTED_ROW, most // 4, manifest.fingerprint),
    )


def draw(dataset: Dataset, most: int, progress: Advance = silent) -> Sample:
    """Return at most about `most` pairs of up to 32 row groups, the same ones on every call."""
    manifest = dataset.manifest
    shards = [record.path for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    total = sum(record.rows for records in manifest.outputs.values() for record in records)
    rows = [path for path in rejects if Path(path).name.startswith("rows")]
    pairs = [path for path in rejects if path not in rows]
    seed = manifest.fingerprint
    return Sample(
        pairs=_rows(dataset.path, shards, PAIR, most, seed, progress),
        rejected_pairs=_rows(dataset.path, pairs, REJECTED_PAIR, most // 4, seed),
        rejected_rows=_rows(dataset.path, rows, REJECTED_ROW, most // 4, seed),
        whole=total <= most,
    )


def _rows(
    out: Path,
    paths: Sequence[str],
    schema: pa.Schema,
    most: int,
    seed: str,
    progress: Advance = silent,
) -> pl.DataFrame:
    import polars as pl

    random = Random(seed)
    groups = [(path, group) for path in paths for group in range(_groups(out / path))]
    if len(groups) > GROUPS:
        groups = sorted(random.sample(groups, GROUPS))
    tables = []
    for path, group in groups:
        tables.append(_read(out / path, group))
        progress("row groups", 1, len(groups))
    total = sum(map(len, tables))
    if total > most:
        tables = [
            table.take(sorted(random.sample(range(len(table)), len(table) * most // total)))
            for table in tables
        ]
    frame = pl.from_arrow(pa.concat_tables([schema.empty_table(), *tables]))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _groups(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(file.num_row_groups)


def _read(path: Path, group: int) -> pa.Table:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read_row_group(group)
    except (pa.ArrowException, OSError) as error:
        raise VerificationError(f"{path}: damaged ({error}); see `cecdata verify`") from error
    batches = [as_current(batch) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, batches[0].schema if batches else table.schema)
