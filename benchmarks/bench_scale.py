"""Measure scaling: threads, and Ray against threads.

One thread, two threads, and Ray with two chunks in flight build the same corpus without the cosine,
one after the other in each round. Two simultaneous processes of one thread each show what the
machine can reach. The CPU time is that of all processes of a build, Ray's own included, less the
start (a build of a few sentences). `--first` measures the first two stages, which `cecdata pool`
runs, with threads alone.

    python benchmarks/bench_scale.py [--pool clean.parquet] [--limit 1500000] [--rounds 1] [--first]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from common import arguments, machine

SCRIPT = "from cecdata.cli import main; main()"
MARK = "CEC_BENCH_SCALE"
TICK = os.sysconf("SC_CLK_TCK")
COPIES = 4
GOALS = {"ray": 1.3, "threads": 1.8}


class Clock(threading.Thread):
    """CPU seconds of all processes that inherited a mark, read from /proc until they end."""

    def __init__(self, mark: str) -> None:
        super().__init__(daemon=True)
        self._mark, self._seen, self.ended = mark.encode(), {}, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError, ValueError, IndexError):
                    known = folder.name in self._seen
                    if not known and self._mark not in (folder / "environ").read_bytes():
                        continue
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    self._seen[folder.name] = (int(fields[11]) + int(fields[12])) / TICK

    def seconds(self) -> float:
        return sum(self._seen.values())


BUILD = ("build", "--filters", "levenshtein")
POOL = ("pool",)


def build(pool: Path, limit: int, *words: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of a command in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        clock = Clock(f"{MARK}={mark}")
        clock.start()
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *words, str(pool), "--out", f"{folder}/out",
             "--limit", str(limit)],
            env={**os.environ, MARK: mark}, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        wall = time.perf_counter() - began
        time.sleep(0.2)
        clock.ended.set()
        clock.join()
        return wall, clock.seconds()


WAYS = {
    "threads 1": ("--workers", "1"),
    "threads 2": ("--workers", "2"),
    "ray 2": ("--workers", "2", "--engine", "ray"),
}


def engines(pool: Path, limit: int, rounds: int, *, first: bool) -> None:
    command = POOL if first else BUILD
    ways = {
        name: (*command, *words) for name, words in WAYS.items() if not (first and "ray" in name)
    }
    few = ("--shard-sentences", "250")  # eight chunks, so that every worker starts
    starts = {name: build(pool, 2000, *words, *few) for name, words in ways.items()}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    both: list[float] = []
    for _ in range(rounds):
        with ThreadPoolExecutor(2) as two:
            builds = [two.submit(build, pool, limit, *ways["threads 1"]) for _ in range(2)]
            both.append(max(made.result()[0] for made in builds) - starts["threads 1"][0])
        for name, words in ways.items():
            wall, cpu = build(pool, limit, *words)
            runs[name].append((wall - starts[name][0], cpu - starts[name][1]))
            print(f"  {name}: {runs[name][-1][0]:.1f} s, {runs[name][-1][1]:.1f} s CPU", flush=True)
    wall = {n: statistics.median(w for w, _ in each) for n, each in runs.items()}
    cpu = {n: statistics.median(c for _, c in each) for n, each in runs.items()}
    print(f"{limit:,} sentences, {' '.join(command)}, start apart:")
    for name in ways:
        pairs = limit if first else limit * COPIES
        what = "sentence" if first else "pair"
        print(f"  {name:<10}{wall[name]:8.1f} s{cpu[name] / pairs * 1e6:8.2f} µs CPU a {what}, "
              f"start {starts[name][1]:.1f} s CPU")  # fmt: skip
    if "ray 2" in ways:
        share = cpu["ray 2"] / cpu["threads 2"]
        print(f"Ray / threads, CPU a pair: {share:.2f} (goal {GOALS['ray']})")
    speed, load = wall["threads 1"] / wall["threads 2"], os.getloadavg()[0]
    print(f"threads 1 → 2, wall: {speed:.2f} (goal {GOALS['threads']}); load {load:.1f}")
    most = 2 * wall["threads 1"] / statistics.median(both)
    print(f"two processes at once: {most:.2f} times one, of which threads reach {speed / most:.2f}")


def main() -> None:
    parser: argparse.ArgumentParser = arguments(__doc__ or "")
    parser.add_argument("--limit", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--first", action="store_true")
    given = parser.parse_args()
    print(machine())
    engines(given.pool, given.limit, given.rounds, first=given.first)


if __name__ == "__main__":
    main()
