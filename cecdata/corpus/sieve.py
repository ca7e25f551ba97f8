"""The application of the quality filters to normalised sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cecdata.corpus.normalise import Normalised, reject
from cecdata.corpus.quality import QUALITY, perplexity
from cecdata.corpus.quality.counts import counted

if TYPE_CHECKING:
    import polars as pl


def sieve(
    clean: Normalised, names: Sequence[str], model: str = "", most: float = np.inf
) -> Normalised:
    """Reject the sentences that fail a filter; the reason names the first filter that they fail.

    With a `model`, sentences whose perplexity is above `most` fail a last filter.
    """
    if not (names or model) or not len(clean.batch):
        return clean
    text = clean.batch.column("text")
    failed = {series.name: series.to_numpy() for series in judged(text, names)}
    details = {name: QUALITY[name].detail for name in names}
    if model:
        failed[perplexity.NAME] = perplexity.perplexity(text, model) > most
        details[perplexity.NAME] = perplexity.detail(most)
    left, rejected = np.ones(len(clean.batch), dtype=np.bool_), [clean.rejected]
    for name, detail in details.items():
        bad = failed[name] & left
        left &= ~bad
        rows = clean.batch.filter(pa.array(bad))
        rejected.append(reject(rows, f"quality_{name}", [detail] * len(rows)))
    return Normalised(clean.batch.filter(pa.array(left)), pa.concat_batches(rejected))


def judged(text: pa.Array, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame with a column for each filter: whether each text fails it."""
    import polars as pl

    patterns = dict.fromkeys(p for name in names for p in QUALITY[name].counts())
    frame = pl.DataFrame({"text": pl.from_arrow(text), **counted(text, list(patterns))})
    return frame.select(QUALITY[name].fails(pl.col("text")).alias(name) for name in names)
