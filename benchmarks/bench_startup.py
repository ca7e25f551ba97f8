"""Measure the start of the command line and a build of the sample, with warm caches.

python benchmarks/bench_startup.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from common import machine

HELP_GOAL_S, SAMPLE_GOAL_S = 0.5, 60.0
_MAIN = "from cecdata.cli import main; main()"


def wall_s(arguments: Sequence[str]) -> float:
    """Return the wall-clock seconds of one command."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", _MAIN, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def line(name: str, seconds: Sequence[float], goal: float) -> str:
    middle = statistics.median(seconds)
    return f"{name:32}{middle:8.2f} s   goal < {goal:g} s: {'met' if middle < goal else 'MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    helps, samples = [], []
    with tempfile.TemporaryDirectory() as folder:
        build = ["build", "sample", "--overwrite", "--out", f"{folder}/out"]
        wall_s(build)  # compiles the kernels where that has not been done
        for _ in range(rounds):
            helps.append(wall_s(["--help"]))
            samples.append(wall_s(build))
    print(f"{machine()}; medians of {rounds} rounds, wall clock")
    print(line("cecdata --help", helps, HELP_GOAL_S))
    print(line("cecdata build sample", samples, SAMPLE_GOAL_S))


if __name__ == "__main__":
    main()
