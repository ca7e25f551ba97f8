"""Every source again, from (seed, id, copy) and the manifest alone: what `verify --full` asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.config import from_manifest
from cecdata.errors import VerificationError
from cecdata.perturb.calibrate import Rate
from cecdata.perturb.engine import Perturber
from cecdata.perturb.tables import compiled
from cecdata.shards.manifest import read_manifest
from cecdata.shards.proofs import Rederive
from cecdata.shards.schema import SENTENCE


def rederiver(out: Path) -> Rederive:
    """The function that `shards.verify` takes: (targets, ids, copies) → sources.

    VerificationError if this installation's confusion sets are not those of the manifest.
    """
    manifest = read_manifest(out)
    config = from_manifest(manifest.configuration)
    tables = compiled(config.prior)
    ours = tables.sha256
    changed = [name for name, digest in manifest.tables.items() if ours.get(name) != digest]
    if changed:
        raise VerificationError(
            f"{out}: built with other confusion sets ({', '.join(changed)}) by version "
            f"{manifest.version}; install that version to derive its sources again"
        )
    frozen = {c.operator: Rate(c.target, c.reachable, c.rate) for c in manifest.calibration}
    rates = [frozen.get(name, Rate(0.0, 0.0, 0.0)) for name in tables.operators]
    perturber = Perturber(config, tables, rates)

    def rederive(
        targets: pa.Array, ids: npt.NDArray[np.uint64], copies: npt.NDArray[np.int16]
    ) -> pa.Array:
        first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.array([], int)
        text = targets.take(pa.array(first))
        batch = pa.RecordBatch.from_arrays(
            [pa.array(ids[first]), text, pa.array([""] * len(first), pa.string())], schema=SENTENCE
        )
        sources = perturber.pairs(batch).table.column("source").combine_chunks()
        sentence = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(ids)]))
        return sources.take(pa.array(sentence * config.copies + copies))

    return rederive
