"""A sample of a dataset, kept and rejected rows, for a report."""

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
from cecdata.shards.manifest import POOL
from cecdata.shards.reader import Dataset
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR, REJECTED_ROW, as_current

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 4  # of each reason
# Row groups from which rows are taken: neighbouring ones may be similar, so one group would not
# represent the others.
GROUPS = 32


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
    """Return at most about `most` rows of up to 32 row groups, the same ones on every call."""
    manifest = dataset.manifest
    files = [record for records in manifest.outputs.values() for record in records]
    rejects = [record.path for record in manifest.rejects]
    rows = [path for path in rejects if Path(path).name.startswith("rows")]
    pairs = [path for path in rejects if path not in rows]
    schema = POOLED if manifest.kind == POOL else PAIR
    seed = manifest.fingerprint
    return Sample(
        kept=_rows(dataset.path, [file.path for file in files], schema, most, seed, progress),
        rejected_pairs=_rows(dataset.path, pairs, REJECTED_PAIR, most // 4, seed),
        rejected_rows=_rows(dataset.path, rows, REJECTED_ROW, most // 4, seed),
        whole=sum(file.rows for file in files) <= most,
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
        tables.append(_read(out / path, group, schema))
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


def _read(path: Path, group: int, schema: pa.Schema) -> pa.Table:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read_row_group(group)
    except (pa.ArrowException, OSError) as error:
        raise VerificationError(f"{path}: damaged ({error}); see `cecdata verify`") from error
    batches = [as_current(batch, schema.names) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, batches[0].schema if batches else schema)
