"""Measure the search for near-duplicates by vector: its recall against all pairs, and its cost.

    python benchmarks/bench_neighbours.py CLEAN.parquet [--sentences 200000] [--encoder builtin]
    python benchmarks/bench_neighbours.py VECTORS.npy [--sentences 200000]

First comes the share of the pairs that is found among about 20,000 sentences. Then come CPU
seconds, the share of all cosines that is computed, and peak memory, at an eighth, a half and all of
the sentences.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cecdata.embed import encoder
from cecdata.embed.cache import Cache, CacheWriter
from cecdata.embed.duplicates import near_duplicates

COMPARED = 20_000  # sentences, about, of which all pairs are compared
SEGMENT = 65_536


@dataclass(frozen=True)
class Source:
    """A stand-in for an encoder, with all that the cache reads of one."""

    dimension: int
    name: str = "vectors"
    revision: str = "vectors 1"
    fingerprint: str = "vectors 1"


def vectors_of(path: Path, count: int, name: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if path.suffix == ".npy":
        stored = np.load(path, mmap_mode="r")
        return np.asarray(stored[np.sort(rng.permutation(len(stored))[:count])], np.float32)
    frame = (
        pl.read_parquet(path, columns=["text"], glob=False)
        .unique()
        .sort("text")
        .sample(count, seed=3)
    )
    return encoder(name, alone=False).encode(frame["text"].to_list())


def cache_of(folder: Path, vectors: np.ndarray) -> Cache:
    keys = np.random.default_rng(1).integers(0, 2**64, len(vectors), np.uint64)
    with CacheWriter(folder, Source(vectors.shape[1])) as writer:  # type: ignore[arg-type]
        for start in range(0, len(vectors), SEGMENT):
            part = slice(start, start + SEGMENT)
            writer.add(keys[part], vectors[part])
    return Cache.open(folder)


def all_pairs(cache: Cache, above: float) -> int:
    rows = np.concatenate([vectors for _, vectors in cache.batches()]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    found = 0
    for start in range(0, len(rows), 1024):
        one, other = np.nonzero(rows[start : start + 1024] @ rows.T >= above)
        found += int((one + start < other).sum())
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source", type=Path)
    options.add_argument("--sentences", type=int, default=200_000)
    options.add_argument("--encoder", default="builtin")
    options.add_argument("--above", type=float, nargs="+", default=[0.95, 0.9, 0.8])
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    vectors = vectors_of(given.source, given.sentences, given.encoder)
    print(f"{len(vectors):,} sentences of {vectors.shape[1]} dimensions")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        few = cache_of(Path(name) / "few", vectors[:: max(1, len(vectors) // COMPARED)])
        for above in given.above:
            wanted, found = all_pairs(few, above), near_duplicates(few, above).pairs
            print(
                f"{above:.2f} of {len(few):,}: {found:,} of {wanted:,} pairs found, "
                f"{found / max(1, wanted):.4%}"
            )
        for count in (len(vectors) // 8, len(vectors) // 2, len(vectors)):
            cache = cache_of(Path(name) / str(count), vectors[:count])
            started = time.process_time()
            told = near_duplicates(cache, given.above[0])
            seconds = time.process_time() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            share = told.compared / (count * (count - 1) / 2)
            print(
                f"{given.above[0]:.2f} of {count:,}: {seconds:.1f} s CPU, {share:.3%} of all "
                f"cosines, {told.pairs:,} pairs, {told.groups:,} groups; at most {peak:.0f} MiB"
            )


if __name__ == "__main__":
    main()
