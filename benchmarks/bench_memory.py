"""Measure the peak memory of builds, or pools, of corpora of several sizes.

Each runs in a process of its own; the peak is its VmHWM. All filters of sentences are on that need
no table of the whole corpus. A corpus is a file of shuffled sentences; where it is larger than the
given one, these recur with another character before them.

    python benchmarks/bench_memory.py [--pool clean.parquet] [--workers 1] [--rounds 3] [--pools]
        [--sizes 150000 1500000]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
from common import arguments, machine, recipe

FILTERS = {
    "mask": True, "quality": ("han", "kana", "signs", "repeated", "mojibake", "boilerplate"),
}  # fmt: skip
GOAL = 0.05
CHILD = "--child"


def child(corpus: str, out: str, workers: int, what: str) -> None:
    """Build once and print the peak in KiB."""
    from dataclasses import replace

    from cecdata.builds.build import build

    config = replace(recipe(), **FILTERS)
    build([corpus], Path(out), config, pool=what == "pool", workers=workers)
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def peak_mib(pool: Path, size: int, workers: int, what: str) -> float:
    """Return the peak of a build of `size` sentences in a fresh process, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.parquet"
        whole = pl.read_parquet(pool, glob=False).sample(fraction=1, shuffle=True, seed=1)
        signs = ["", *"甲乙丙丁戊己庚辛"][: -(-size // len(whole))]
        texts = [whole.with_columns(text=pl.lit(sign) + pl.col("text")) for sign in signs]
        pl.concat(texts).head(size).write_parquet(corpus, row_group_size=200_000)
        command = [sys.executable, __file__, CHILD, corpus, folder + "/out", workers, what]
        done = subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True
        )
    return int(done.stdout.split()[-1]) / 1024


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pools", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[150_000, 1_500_000])
    options = parser.parse_args()
    what = "pool" if options.pools else "build"
    peaks: dict[int, list[float]] = {size: [] for size in options.sizes}
    for _ in range(options.rounds):
        for size in options.sizes:
            peaks[size].append(peak_mib(options.pool, size, options.workers, what))
    print(f"{machine()}; {options.workers} worker(s); medians of {options.rounds} rounds")
    peak_of: dict[int, float] = {}
    for size, found in peaks.items():
        peak_of[size] = statistics.median(found)
        print(f"  {size:>9,} sentences: peak {peak_of[size]:6.0f} MiB")
        print(f"            rounds: {', '.join(f'{value:.0f}' for value in found)}")
    more = max(peak_of.values()) / peak_of[options.sizes[0]] - 1
    verdict = "met" if more <= GOAL else "MISSED"
    print(f"highest peak, against the first size: {more:+.1%}  goal 5 %: {verdict}")


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        child(*sys.argv[2:4], int(sys.argv[4]), sys.argv[5])
    else:
        main()
