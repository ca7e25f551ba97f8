"""Cosine of the sentence embeddings of source and target (paper: at least 0.65)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cecdata.filters.base import Settings
from cecdata.perturb.engine import Pairs
from cecdata.perturb.kernel import sample_words


def measure(pairs: Pairs, settings: Settings) -> Pairs:
    """The column `cosine` for the sampled sentences' pairs; null elsewhere."""
    if settings.encoder is None or not len(pairs.table):
        return pairs
    words = sample_words(settings.seed, np.asarray(pairs.table.column("id").combine_chunks()))
    chosen = np.flatnonzero(words < np.uint64(min(settings.sampled, 2**64 - 1)))
    sample = pairs.table.select(["source", "target"]).take(pa.array(chosen))
    coded = sample.column("target").cast(pa.string()).combine_chunks().dictionary_encode()
    rows = np.asarray(coded.indices)
    target_vectors = settings.encoder.encode(coded.dictionary.to_pylist())
    source_vectors = settings.encoder.encode(sample.column("source").to_pylist())
    found = np.zeros(len(pairs.table), np.float32)
    # vectors are of unit length; in float64, or the sum's order would show
    found[chosen] = np.einsum(
        "pd,pd->p", source_vectors.astype(np.float64), target_vectors[rows].astype(np.float64)
    )
    known = np.zeros(len(pairs.table), np.bool_)
    known[chosen] = True
    at = pairs.table.schema.get_field_index("cosine")
    column = pa.array(found, pa.float32(), mask=~known)
    return Pairs(pairs.table.set_column(at, pairs.table.schema.field(at), column), pairs.lengths)
