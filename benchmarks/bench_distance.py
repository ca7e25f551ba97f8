"""Check the distances of the engine's pairs against rapidfuzz; a fifth of the pairs is mixed.

python benchmarks/bench_distance.py [--pool clean.parquet] [--sentences 1050000]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from common import arguments, machine, recipe, sentences
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from cecdata.perturbation.engine import Perturber

STEP = 32_768  # sentences at a time


def wrong(perturber: Perturber, batch: pa.RecordBatch) -> tuple[int, int]:
    """Return the number of pairs of these sentences, and how many of their distances are wrong."""
    table = perturber.pairs(batch).table
    target = table.column("target").cast(pa.string())
    found = cpdist(
        table.column("source").to_pylist(), target.to_pylist(),
        scorer=Levenshtein.distance, dtype=np.int16,
    )  # fmt: skip
    known = np.asarray(table.column("distance").combine_chunks())
    return len(table), int(np.count_nonzero(known != found))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--sentences", type=int, default=1_050_000)
    options = parser.parse_args()
    config = replace(recipe(), mixed=0.2)
    whole = sentences(options.pool, options.sentences)
    perturber = Perturber.calibrated(config, whole.column("text"))
    pairs = bad = 0
    for start in range(0, len(whole), STEP):
        more, found = wrong(perturber, whole.slice(start, STEP))
        pairs, bad = pairs + more, bad + found
    print(machine())
    print(f"{bad:,} wrong distances in {pairs:,} pairs   goal 0: {'MISSED' if bad else 'met'}")


if __name__ == "__main__":
    main()
