"""Measure the embedding cache: bytes a vector, look-ups a second, opening, memory, flipped bits.

    python benchmarks/bench_cache.py [--rows 200000] [--flips 10000] [--folder DIR]

Each figure is printed beside its goal. Opening, and the memory that filling, compacting and
writing the FAISS file take, are measured in fresh processes. `--rows 1000000` needs 6.3 GB of disk;
the default needs a fifth of that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cecdata.common.errors import CecError
from cecdata.embed.cache import Cache, CacheWriter
from cecdata.embed.cache.faiss_file import installed, open_index

DIMENSION, SEGMENT, BATCH = 1024, 50_000, 10_000

OPENING = """
import json, os, sys, time
from cecdata.embed.cache import Cache
from cecdata.embed.cache import faiss_file
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before = resident()
started = time.perf_counter()
cache = Cache.open(sys.argv[1])
seconds = time.perf_counter() - started
after = resident()
print(json.dumps({"rows": len(cache), "seconds": seconds, "mib": after - before}))
"""


FILLING = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from bench_cache import Random, fill
from pathlib import Path
fill(Path(sys.argv[2]), int(sys.argv[3]), Random())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@dataclass(frozen=True)
class Random:
    """A stand-in for an encoder, with all that the cache reads of one."""

    dimension: int = DIMENSION
    name: str = "random"
    revision: str = "random 1"
    fingerprint: str = "random 1"


def fill(folder: Path, rows: int, model: Random) -> None:
    rng = np.random.default_rng(0)
    with CacheWriter(folder, model) as cache:  # type: ignore[arg-type]
        for start in range(0, rows, SEGMENT):
            count = min(SEGMENT, rows - start)
            vectors = rng.standard_normal((count, model.dimension), np.float32)
            vectors /= np.linalg.norm(vectors, axis=1)[:, None]
            cache.add(rng.integers(0, 2**64, count, np.uint64), vectors)
        cache.compact()
        cache.finish()


def filling(folder: Path, rows: int) -> float:
    """Return the peak memory, in MiB, of a process that fills, compacts and indexes a cache."""
    command = [sys.executable, "-c", FILLING, str(Path(__file__).parent), str(folder), str(rows)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def flips(count: int) -> tuple[int, dict[str, int]]:
    """Flip one bit in a file of a small cache, `count` times.

    Return how many flips went unnoticed, and how many were tried by file suffix.
    """
    rng, missed, tried = np.random.default_rng(1), 0, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "small"
        fill(folder, 64, Random(32))
        files = [p for p in folder.rglob("*") if p.is_file() and ".cecdata" not in p.parts]
        whole = {path: path.read_bytes() for path in files}
        for n in range(count):
            path = files[n % len(files)]
            at = int(rng.integers(8 * len(whole[path])))
            damaged = bytearray(whole[path])
            damaged[at // 8] ^= 1 << at % 8
            path.write_bytes(damaged)
            tried[path.suffix] = tried.get(path.suffix, 0) + 1
            try:
                cache = Cache.open(folder)
                for _ in cache.batches():
                    pass
                if installed():
                    open_index(cache)
                missed += 1
            except CecError:
                pass
            path.write_bytes(whole[path])
    return missed, tried


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--flips", type=int, default=10_000)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name) / "cache"
        less, most = filling(Path(name) / "few", given.rows // 4), filling(folder, given.rows)
        cache = Cache.open(folder)
        size = sum(p.stat().st_size for p in (folder / "segments").iterdir())
        size += (folder / "cache.json").stat().st_size
        print(f"bytes a vector   {size / len(cache):12,.2f}  (at most 2,064; FAISS file apart)")
        rng, keys = np.random.default_rng(2), cache.segments[0].keys
        drawn = [rng.choice(keys, BATCH) for _ in range(20)]
        cache.get(drawn[0])
        started, used = time.perf_counter(), time.process_time()
        for some in drawn:
            cache.get(some)
        used = len(drawn) * BATCH / (time.process_time() - used)
        rate = len(drawn) * BATCH / (time.perf_counter() - started)
        print(f"look-ups         {rate:12,.0f}  a second, {rate / 150_000:.2f} × the goal")
        print(f"                 {used:12,.0f}  a CPU-second, which excludes other work")
        told = subprocess.run(
            [sys.executable, "-c", OPENING, str(folder)], capture_output=True, text=True, check=True
        )
        found = json.loads(told.stdout)
        print(
            f"opening          {found['seconds']:12.4f}  s for {found['rows']:,} vectors "
            f"(goal: < 0.2 for 1,000,000)"
        )
        print(f"memory           {found['mib']:12.1f}  MiB more after it (goal: < 50)")
        print(
            f"filling          {most:12.0f}  MiB at most, FAISS file and compaction included "
            f"({less:.0f} MiB with a quarter of the rows)"
        )
    missed, tried = flips(given.flips)
    print(f"flips unnoticed  {missed:12,}  of {sum(tried.values()):,} {tried}")


if __name__ == "__main__":
    main()
