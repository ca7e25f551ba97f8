"""Measure the peak memory of builds of 0.25 M and 1.5 M sentences, each in a process of its own.

The peak is VmHWM of the process. It includes the table of ids for duplicate detection, which must
grow with the corpus; the final size of this table is printed beside the peak.

    python benchmarks/bench_memory.py [--pool clean.parquet] [--workers 1] [--rounds 3]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import arguments, machine, recipe

from cecdata.corpus.dedup import Dedup

SIZES = (250_000, 1_500_000)
GOAL = 0.05
CHILD = "--child"


def child(pool: str, out: str, limit: int, workers: int) -> None:
    """Build once and print the peak in KiB."""
    from dataclasses import replace

    from cecdata.builds.build import build

    build([pool], Path(out), replace(recipe(), limit=limit), workers=workers)
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def peak_mib(pool: Path, limit: int, workers: int) -> float:
    """Return the peak of a build in a fresh process, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, CHILD, pool, folder + "/out", limit, workers]
        done = subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True
        )
    return int(done.stdout.split()[-1]) / 1024


def table_mib(sentences: int) -> float:
    """Return the size of the table of ids once it holds so many, in MiB."""
    seen = Dedup()
    seen._reserve(sentences)  # noqa: SLF001
    return float(seen.nbytes / 2**20)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    peaks: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(options.rounds):
        for size in SIZES:
            peaks[size].append(peak_mib(options.pool, size, options.workers))
    print(f"{machine()}; {options.workers} worker(s); medians of {options.rounds} rounds")
    peak_of: dict[int, float] = {}
    for size, found in peaks.items():
        peak, table = statistics.median(found), table_mib(size)
        peak_of[size] = peak
        print(f"  {size:>9,} sentences: peak {peak:6.0f} MiB  (table of ids {table:4.0f} MiB)")
        print(f"            rounds: {', '.join(f'{value:.0f}' for value in found)}")
    small, large = (peak_of[size] for size in SIZES)
    spread = abs(large / small - 1)
    verdict = "met" if spread <= GOAL else "MISSED"
    print(f"peak of the larger, against the smaller: {large / small - 1:+.1%}  goal 5 %: {verdict}")


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
