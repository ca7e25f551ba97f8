"""Cosine of the sentence embeddings of source and target (paper: at least 0.65)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cecdata.embed import PairScorer
from cecdata.embed.gate import embedded_cosines
from cecdata.filters.base import Settings
from cecdata.perturbation.engine import Pairs
from cecdata.perturbation.kernel import sample_words


def measure(pairs: Pairs, settings: Settings) -> Pairs:
    """The column `cosine` for the sampled sentences' pairs; null elsewhere."""
    if settings.encoder is None or not len(pairs.table):
        return pairs
    ids = np.asarray(pairs.table.column("id").combine_chunks()).view(np.uint64)
    words = sample_words(settings.seed, ids)
    chosen = np.flatnonzero(words < np.uint64(min(settings.sampled, 2**64 - 1)))
    model, sample, passed_on = settings.encoder, pairs.table, 0
    if len(chosen) < len(sample):
        sample = sample.take(pa.array(chosen))
    if isinstance(model, PairScorer):
        scored = model.score(sample)
        cosine, passed_on = scored.cosine, scored.passed_on
    else:
        cosine = embedded_cosines(model, sample)
    found = np.zeros(len(pairs.table), np.float32)
    found[chosen] = cosine
    known = np.zeros(len(pairs.table), np.bool_)
    known[chosen] = True
    at = pairs.table.schema.get_field_index("cosine")
    column = pa.array(found, pa.float32(), mask=~known)
    table = pairs.table.set_column(at, pairs.table.schema.field(at), column)
    return replace(pairs, table=table, passed_on=passed_on)
