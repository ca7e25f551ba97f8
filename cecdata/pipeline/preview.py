"""Pairs of a single sentence, calibrated on itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.config import Config
from cecdata.corpus.normalise import Options, normalise
from cecdata.perturbation.engine import Perturber
from cecdata.pipeline.validate import validate
from cecdata.shards.schema import ROW, SENTENCE


def pairs_of(sentence: str, config: Config) -> list[dict[str, Any]]:
    """Return the kept copies as rows of PAIR; raise InputError if the text is not one sentence."""
    row = {"text": sentence, "origin": "preview", "file": "-", "row": 1}
    normalised = normalise(
        pa.RecordBatch.from_pylist([row], ROW), Options(config.min_chars, config.max_chars)
    )
    if len(normalised.rejected):
        bad = normalised.rejected.to_pylist()[0]
        raise InputError(f"not a sentence ({bad['reason']}: {bad['detail']})")
    batch = normalised.batch.select(SENTENCE.names).cast(SENTENCE)
    pairs = Perturber.calibrated(config, batch.column("text")).pairs(batch)
    kept = validate(pairs, config).kept
    rows: list[dict[str, Any]] = kept.table.to_pylist()
    return rows
