"""A sample of a dataset, kept and rejected rows, for a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cecdata.common.progress import Advance, silent
from cecdata.shards.manifest import POOL
from cecdata.shards.reader import Dataset, read_batches
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR, REJECTED_ROW

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 4  # of each reason


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a dataset; `whole` if the kept ones are all of them.

    `kept` has the columns of a shard, of pairs or of a pool; the others have those of the files in
    `rejects/`.
    """

    kept: pl.DataFrame
    rejected_pairs: pl.DataFrame
    rejected_rows: pl.DataFrame
    whole: bool

    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Return examples of rejected texts and pairs for each reason."""
        import polars as pl

        pairs = self.rejected_pairs.with_columns(text=pl.format("{} → {}", "target", "source"))
        found: dict[str, tuple[str, ...]] = {}
        for rejected in (self.rejected_rows, pairs):
            grouped = rejected.group_by("reason", maintain_order=True)
            texts = grouped.agg(pl.col("text").head(EXAMPLES).alias("texts"))
            found |= {reason: tuple(examples) for reason, examples in texts.iter_rows()}
        return found


def draw(dataset: Dataset, most: int, progress: Advance = silent) -> Sample:
    """Return the first `most` rows, and a quarter as many rejected rows and pairs.

    Rows are sorted by their ids, which are hashes, so the first ones represent the others.
    """
    manifest = dataset.manifest
    files = [record for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    rows = [path for path in rejects if Path(path).name.startswith("rows")]
    pairs = [path for path in rejects if path not in rows]
    schema = POOLED if manifest.kind == POOL else PAIR
    return Sample(
        kept=_first(dataset.path, [file.path for file in files], schema, most, progress),
        rejected_pairs=_first(dataset.path, pairs, REJECTED_PAIR, most // 4),
        rejected_rows=_first(dataset.path, rows, REJECTED_ROW, most // 4),
        whole=sum(file.rows for file in files) <= most,
    )


def _first(
    out: Path, paths: Sequence[str], schema: pa.Schema, most: int, progress: Advance = silent
) -> pl.DataFrame:
    import polars as pl

    tables, left = [schema.empty_table()], most
    batches = (batch for path in paths for batch in read_batches(out / path, schema.names))
    for batch in batches:
        tables.append(pa.Table.from_batches([batch.slice(0, left)]))
        left -= len(tables[-1])
        progress("rows", len(tables[-1]), most)
        if not left:
            break
    frame = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(frame, pl.DataFrame)
    return frame
