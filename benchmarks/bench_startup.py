"""Measure the start of the command line, a build of the sample, and the correction of a sentence.

    python benchmarks/bench_startup.py [--rounds 5] [--beside TREE]

Caches are warm. With --beside the corrector of another checkout is measured in the same rounds, so
that both bear the same load of the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import machine

HELP_GOAL_S, SAMPLE_GOAL_S = 0.5, 60.0
CORRECT_GOAL_S = {"channel": 0.9, "combined": 1.2}
MEMORY_GOAL_MB = 300
_MAIN = "from cecdata.cli import main; main()"
_SENTENCE = "他的病情己经好转。"


def wall_s(arguments: Sequence[str]) -> float:
    """Return the wall-clock seconds of one command."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", _MAIN, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def corrected(tree: Path, model: str) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and megabytes of `cectrain correct` on one sentence."""
    command = [sys.executable, "-m", "cectrain", "correct", "--model", model]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, _SENTENCE], env=environment, cwd=tree, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def line(name: str, seconds: Sequence[float], goal: float) -> str:
    middle = statistics.median(seconds)
    return f"{name:32}{middle:8.2f} s   goal < {goal:g} s: {'met' if middle < goal else 'MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="another checkout")
    asked = parser.parse_args()
    rounds = asked.rounds
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
    trees = [Path(__file__).parent.parent, *([asked.beside] if asked.beside else [])]
    for model, goal in CORRECT_GOAL_S.items():
        found = {tree: [corrected(tree, model)] for tree in trees}  # compiles where need be
        for _ in range(rounds):
            for tree in trees:
                found[tree].append(corrected(tree, model))
        for tree in trees:
            walls, cpus, sizes = zip(*found[tree][1:], strict=True)
            print(line(f"correct --model {model}", walls, goal), tree)
            cpu, size = statistics.median(cpus), statistics.median(sizes)
            print(f"{'':32}{cpu:8.2f} s of CPU, {size:.0f} MB   goal < {MEMORY_GOAL_MB} MB")


if __name__ == "__main__":
    main()
