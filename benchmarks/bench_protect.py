"""Measure the protection of spans and names: CPU time of both passes of the engine.

    python benchmarks/bench_protect.py [--sentences 100000] [--names 10000]

Print CPU microseconds a pair of histogram and perturbation for the recipe `typed` without
protection, with spans, and with spans and names; then of a whole build (levenshtein alone) without
and with spans. The rounds are interleaved in one process; the ratios are medians. The names are the
rarest three-character words of the lexicon.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
from common import arguments, sentences

from cecdata.builds.build import build
from cecdata.config import Config, load
from cecdata.hanzi.characters import words
from cecdata.perturbation.engine import Histogram, Perturber

ROUNDS = 9


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Work:
    """The engine under one configuration over one batch."""

    def __init__(self, config: Config, batch: pa.RecordBatch) -> None:
        self.config, self.batch = config, batch
        self.histogram = Histogram.of(config)
        self.histogram.add(batch.column("text"))
        self.perturber = Perturber.of(config, self.histogram.rates())

    def ns_a_pair(self) -> float:
        started = time.thread_time()
        self.histogram.add(self.batch.column("text"))
        self.perturber.pairs(self.batch)
        spent = time.thread_time() - started
        return 1e9 * spent / (len(self.batch) * self.config.copies)


def whole(config: Config, corpus: Path, folder: Path) -> float:
    started = cpu_s()
    build([str(corpus)], folder, config)
    return cpu_s() - started


def told(name: str, cells: list[float], base: list[float], unit: str) -> None:
    ratio = statistics.median(one / other for one, other in zip(cells, base, strict=True))
    print(f"{name:24}{statistics.median(cells):9.3f} {unit}   × {ratio:.3f}")


def main() -> None:
    options = arguments(__doc__)
    options.add_argument("--sentences", type=int, default=100_000)
    options.add_argument("--names", type=int, default=10_000)
    given = options.parse_args()
    batch = sentences(given.pool, given.sentences)
    listed = words(3)
    rare = sorted(zip(listed.counts, listed.texts, strict=True))[: given.names]
    names = tuple(sorted(text for _, text in rare))
    off = load("typed", filters=("levenshtein",), protect_spans=False)
    on = load("typed", filters=("levenshtein",))
    both = load("typed", filters=("levenshtein",), protect=names)
    works = {
        "engine, without": Work(off, batch),
        "engine, spans": Work(on, batch),
        f"engine, {len(names):,} names": Work(both, batch),
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            found[name].append(work.ns_a_pair() / 1000)
    for name, cells in found.items():
        told(name, cells, found["engine, without"], "µs a pair")
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.parquet"
        pl.DataFrame({"text": batch.column("text").to_pylist()}).write_parquet(corpus)
        spent: dict[str, list[float]] = {"without": [], "spans": []}
        for turn in range(5):
            for name, config in (("without", off), ("spans", on)):
                seconds = whole(config, corpus, Path(folder) / f"{name}{turn}")
                spent[name].append(1e6 * seconds / (len(batch) * config.copies))
    for name, cells in spent.items():
        told(f"build, {name}", cells, spent["without"], "µs a pair")


if __name__ == "__main__":
    main()
