"""Measure a whole build against the paper's listing and against the floor of its necessary parts.

Ours: Parquet in → read, normalise, deduplicate, pool → pairs with edits, distance, validation →
Parquet zstd-1, journal and proofs included, no cosine, one worker. The listing: read Parquet,
perturb, rapidfuzz's Levenshtein ≤ 8, write Parquet zstd-1, on a sample, by pair. The floor is the
sum of the parts that no program can leave out, each measured alone and by pair: reading the file,
the kernel, and encoding and compressing all columns of the pairs (kernel and writing on one chunk).

Not counted: compiling the kernels and the confusion sets (a warm-up build of the sample corpus).

    python benchmarks/bench_build.py [--pool clean.parquet] [--rounds 3]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from bench_kernel import Work
from common import arguments, cpu_s, judged, machine, recipe, sentences
from listing import Listing, tables

from cecdata.builds.build import build
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import write_pairs

LISTED = 20_000  # sentences for the listing
GOAL_LISTING, GOAL_FLOOR = 200, 0.6


def listing_by_pair(pool: Path, listing: Listing, folder: Path) -> float:
    """Return the CPU seconds per pair of the paper's listing, from Parquet to Parquet."""
    source, made = folder / "sample.parquet", folder / "listing.parquet"
    pq.write_table(pa.Table.from_batches([sentences(pool, LISTED)]), source)
    config = recipe()

    def run() -> None:
        from rapidfuzz.distance import Levenshtein

        pairs = [
            (x, y)
            for text in pq.read_table(source).column("text").to_pylist()
            for x, y in listing.perturb(text, config.copies)
            if x and Levenshtein.distance(x, y) <= config.max_distance
        ]
        columns = {"source": [x for x, _ in pairs], "target": [y for _, y in pairs]}
        pq.write_table(pa.table(columns), made, compression="zstd", compression_level=1)

    return float(cpu_s(run) / (LISTED * config.copies))


class Floor:
    """The cost per pair of the parts that no program can leave out."""

    def __init__(self, pool: Path, folder: Path) -> None:
        self.pool, self.folder, self.config = pool, folder, recipe()
        self.rows = pq.ParquetFile(pool).metadata.num_rows
        batch = sentences(pool, self.config.shard_sentences)
        self.work = Work.of(self.config, batch)
        self.table = Perturber.calibrated(self.config, batch.column("text")).pairs(batch).table
        self.work.numba()

    def parts(self) -> dict[str, float]:
        """Return the CPU seconds per pair to read, to run the kernel, to encode and compress."""
        made = self.folder / "floor.parquet"
        pairs = len(self.table)
        return {
            "read": cpu_s(self._read) / (self.rows * self.config.copies),
            "kernel": cpu_s(self.work.numba) / pairs,
            "encode and zstd-1": cpu_s(lambda: write_pairs(made, self.table)) / pairs,
        }

    def _read(self) -> None:
        with pq.ParquetFile(self.pool) as file:
            for _ in file.iter_batches(65_536, columns=["text", "origin"], use_threads=False):
                pass


def build_by_pair(pool: Path, folder: Path) -> tuple[float, float, int]:
    """Return the CPU and wall seconds per pair of a whole build, and its number of pairs."""
    seen: list[int] = []
    started = time.perf_counter()
    cpu = cpu_s(
        lambda: seen.append(
            build([str(pool)], folder / "ours", recipe(), overwrite=True).pairs.kept
        )
    )
    wall = time.perf_counter() - started
    return cpu / seen[0], wall / seen[0], seen[0]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours, walls, listed, share, parts = [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(["sample"], folder / "warm", recipe())
        floor, listing = Floor(options.pool, folder), Listing(tables())
        for _ in range(options.rounds):
            listed.append(listing_by_pair(options.pool, listing, folder))
            parts.append(floor.parts())
            cpu, wall, pairs = build_by_pair(options.pool, folder)
            parts.append(floor.parts())
            ours.append(cpu)
            walls.append(wall)
            both = parts[-2:]  # before and after: the machine may have been busier at one time
            share.append(statistics.mean(sum(part.values()) for part in both) / cpu)
    print(f"{machine()}; one worker; medians of {options.rounds} rounds; {pairs:,} pairs")
    for label, values in (("CPU", ours), ("wall", walls)):
        s = statistics.median(values)
        total = f"{s * pairs:6.1f} s in all, {1 / s:11,.0f} pairs a second"
        print(f"  ours     {s * 1e6:8.3f} µs a pair, {label} ({total})")
    print(f"  listing  {statistics.median(listed) * 1e6:8.3f} µs a pair, CPU")
    for part in parts[0]:
        value = statistics.median(found[part] for found in parts)
        print(f"  floor    {value * 1e6:8.3f} µs a pair, {part}")
    ratios = [a / b for a, b in zip(listed, ours, strict=True)]
    print(judged("end to end: ours / listing", statistics.median(ratios), GOAL_LISTING))
    print(judged("floor / end to end", statistics.median(share), GOAL_FLOOR))


if __name__ == "__main__":
    main()
