"""Measure the peak memory of builds, or pools, of 0.15 M and 1.5 M sentences.

Each runs in a process of its own; the peak is its VmHWM. All filters of sentences are on that need
no table of the whole corpus.

    python benchmarks/bench_memory.py [--pool clean.parquet] [--workers 1] [--rounds 3] [--pools]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import arguments, machine, recipe

SIZES = (150_000, 1_500_000)
FILTERS = {
    "mask": True, "quality": ("han", "kana", "signs", "repeated", "mojibake", "boilerplate"),
}  # fmt: skip
GOAL = 0.05
CHILD = "--child"


def child(pool: str, out: str, limit: int, workers: int, what: str) -> None:
    """Build once and print the peak in KiB."""
    from dataclasses import replace

    from cecdata.builds.build import build

    config = replace(recipe(), limit=limit, **FILTERS)
    build([pool], Path(out), config, pool=what == "pool", workers=workers)
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def peak_mib(pool: Path, limit: int, workers: int, what: str) -> float:
    """Return the peak of a build in a fresh process, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, CHILD, pool, folder + "/out", limit, workers, what]
        done = subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True
        )
    return int(done.stdout.split()[-1]) / 1024


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pools", action="store_true")
    options = parser.parse_args()
    what = "pool" if options.pools else "build"
    peaks: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(options.rounds):
        for size in SIZES:
            peaks[size].append(peak_mib(options.pool, size, options.workers, what))
    print(f"{machine()}; {options.workers} worker(s); medians of {options.rounds} rounds")
    peak_of: dict[int, float] = {}
    for size, found in peaks.items():
        peak_of[size] = statistics.median(found)
        print(f"  {size:>9,} sentences: peak {peak_of[size]:6.0f} MiB")
        print(f"            rounds: {', '.join(f'{value:.0f}' for value in found)}")
    small, large = (peak_of[size] for size in SIZES)
    verdict = "met" if large / small - 1 <= GOAL else "MISSED"
    print(f"peak of the larger, against the smaller: {large / small - 1:+.1%}  goal 5 %: {verdict}")


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        child(*sys.argv[2:4], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
    else:
        main()
