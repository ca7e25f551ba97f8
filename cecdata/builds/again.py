"""Pairs derived again: of a single sentence, and those of a dataset for `verify --full`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.builds.validate import validate
from cecdata.common.errors import InputError
from cecdata.config import Config
from cecdata.corpus.ids import is_validation
from cecdata.corpus.normalise import Options, normalise
from cecdata.perturbation.engine import Perturber
from cecdata.shards.manifest import read_manifest
from cecdata.shards.proofs import Rederive
from cecdata.shards.schema import PAIR, ROW, SENTENCE

COLUMNS = ("source", "operator", "edits")

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


def rederiver(out: Path) -> Rederive:
    """Return the function that `shards.verify` takes: (targets, ids, copies) → the pairs.

    Raises VerificationError if this installation's confusion sets are not those of the manifest.
    """
    perturber = Perturber.from_manifest(read_manifest(out))
    config = perturber.config

    def rederive(
        targets: pa.Array, ids: npt.NDArray[np.int64], copies: npt.NDArray[np.int16]
    ) -> pa.Table:
        first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.array([], int)
        text = targets.take(pa.array(first))
        batch = pa.RecordBatch.from_arrays(
            [pa.array(ids[first]), text, pa.array([""] * len(first), pa.string())], schema=SENTENCE
        )
        table = perturber.pairs(batch).table.select(COLUMNS)
        sentence = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(ids)]))
        none = (copies < 0) | (copies >= config.copies)
        rows = pa.array(sentence * config.copies + np.where(none, 0, copies), mask=none)
        plain = [table.column(name).cast(PAIR.field(name).type) for name in COLUMNS]
        held_out = pa.chunked_array([pa.array(is_validation(ids, config.holdout))])
        return pa.table(
            [*(column.take(rows) for column in plain), held_out], [*COLUMNS, "held_out"]
        )

    return rederive
