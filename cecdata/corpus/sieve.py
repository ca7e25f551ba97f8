"""Applies the quality filters to normalised sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from cecdata.corpus.normalise import Normalised, reject
from cecdata.corpus.quality import QUALITY


def sieve(clean: Normalised, names: Sequence[str]) -> Normalised:
    """Reject the sentences that one of the filters rejects; the reason is the first one's name."""
    if not names or not len(clean.batch):
        return clean
    text = pl.col("text")
    frame = pl.DataFrame({"text": pl.from_arrow(clean.batch.column("text"))})
    failed = frame.select(QUALITY[name].fails(text).alias(name) for name in names)
    left, rejected = np.ones(len(frame), dtype=np.bool_), [clean.rejected]
    for name in names:
        bad = failed[name].to_numpy() & left
        left &= ~bad
        rows = clean.batch.filter(pa.array(bad))
        rejected.append(reject(rows, f"quality_{name}", [QUALITY[name].detail] * len(rows)))
    return Normalised(clean.batch.filter(pa.array(left)), pa.concat_batches(rejected))
