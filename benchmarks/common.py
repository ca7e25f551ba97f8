"""Parts that the speed benchmarks share: the real corpus, CPU clocks, medians of pairs of runs."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.config import Config, load
from cecdata.corpus.ids import make_id_column
from cecdata.shards.schema import SENTENCE

SHORT = 22.6  # code points: the mean length of the paper's sentences


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the option that all of these benchmarks have."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    shared = os.environ.get("CEC_SHARED")
    default = Path(shared) / "clean/clean.parquet" if shared else None
    parser.add_argument(
        "--pool", type=Path, default=default, required=default is None,
        help="Parquet file with a column `text`  [$CEC_SHARED/clean/clean.parquet]",
    )  # fmt: skip
    return parser


def recipe() -> Config:
    """Return the paper's recipe without the cosine."""
    return load("paper", filters=("levenshtein",))


def sentences(path: Path, count: int, mean: float | None = None) -> pa.RecordBatch:
    """Return `count` random sentences of a corpus (schema SENTENCE).

    With `mean` only shorter sentences are drawn: the maximum length is chosen so that the mean
    length, in code points, is about `mean`.
    """
    table = pq.read_table(path, columns=["text"]).combine_chunks()
    text = table.column("text").combine_chunks().cast(pa.string())
    lengths = np.asarray(pa.compute.utf8_length(text))
    fit = np.flatnonzero((lengths >= recipe().min_chars) & (lengths <= recipe().max_chars))
    if mean is not None:
        ordered = np.sort(lengths[fit])
        means = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
        longest = ordered[np.searchsorted(means, mean)]
        fit = fit[lengths[fit] <= longest]
    order = np.random.default_rng(1).permutation(fit)[:count]
    chosen = text.take(pa.array(order))
    origin = pa.array(["benchmark"] * len(chosen))
    return pa.RecordBatch.from_arrays([make_id_column(chosen), chosen, origin], schema=SENTENCE)


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this process for one call, with garbage collection off."""
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        gc.enable()


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each work in each round; a round runs all, one after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name].append(cpu_s(work))
    return seconds


def ratio(numerator: list[float], denominator: list[float]) -> float:
    """Return the median of the rounds' ratios: noise that hits a whole round cancels out."""
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def judged(name: str, value: float, goal: float) -> str:
    """Return a line with a value, its goal, and whether the goal is met."""
    return f"{name:44}{value:10,.2f}   goal ≥ {goal:g}: {'met' if value >= goal else 'MISSED'}"


def machine() -> str:
    """Return the number of cores, the CPU model and the Python version as text."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = named[0].partition(":")[2].strip() if named else model
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"
