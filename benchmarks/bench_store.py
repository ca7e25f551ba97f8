"""Measure a store of embeddings: look-ups a CPU second, opening, memory, writing.

    python benchmarks/bench_store.py [--rows 200000] [--dimension 1024] [--files 4] [--folder DIR]

Vectors are random. Opening and its memory are measured in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cecdata.embed.store import STORE, Range, contents_bytes, open_store, range_bytes

BATCH, BATCHES = 10_000, 20
GOAL = 50_000  # look-ups a CPU second
OPENING = """
import json, os, sys, time
from cecdata.embed.store import open_store
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before = resident()
started = time.perf_counter()
store = open_store(sys.argv[1])
seconds = time.perf_counter() - started
print(json.dumps({"rows": len(store), "seconds": seconds, "mib": resident() - before}))
"""


@dataclass(frozen=True)
class Random:
    """Stands in for an encoder, with all that a store reads of one."""

    dimension: int
    name: str = "random"
    revision: str = "random 1"
    fingerprint: str = "random 1"


def fill(folder: Path, rows: int, files: int, model: Random) -> float:
    """Write a store of random vectors and return the CPU seconds of writing."""
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(-(2**63), 2**63 - 1, rows))
    spent, ranges = 0.0, []
    for number, part in enumerate(np.array_split(ids, files)):
        vectors = rng.standard_normal((len(part), model.dimension), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        started = time.process_time()
        data = range_bytes(part, vectors).tobytes()
        (folder / f"{number:05d}.faiss").write_bytes(data)
        spent += time.process_time() - started
        first, last, digest = int(part[0]), int(part[-1]), hashlib.sha256(data).hexdigest()
        name = f"{number:05d}.faiss"
        ranges.append(Range(name, first, last, len(part), len(data), digest))
    (folder / STORE).write_bytes(contents_bytes(model, ranges))  # type: ignore[arg-type]
    return spent


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--dimension", type=int, default=1024)
    options.add_argument("--files", type=int, default=4)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        seconds = fill(folder, given.rows, given.files, Random(given.dimension))
        print(f"writing   {1e6 * seconds / given.rows:12,.2f}  µs CPU a vector")
        store = open_store(folder)
        ids = np.concatenate([store.rows_of(part).ids for part in store.contents.ranges])
        drawn = np.random.default_rng(2).choice(ids, (BATCHES, BATCH))
        store.lookup(drawn[0])
        started = time.process_time()
        for some in drawn:
            assert store.lookup(some).found.all()
        rate = drawn.size / (time.process_time() - started)
        print(f"look-ups  {rate:12,.0f}  a CPU second (goal: {GOAL:,})")
        command = [sys.executable, "-c", OPENING, name]
        said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        print(f"opening   {said['seconds']:12.4f}  s for {said['rows']:,} vectors")
        print(f"memory    {said['mib']:12.1f}  MiB more after it")


if __name__ == "__main__":
    main()
