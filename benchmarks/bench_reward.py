"""Measure the time of clustering and of the reward terms of one batch, without the encoder.

python benchmarks/bench_reward.py [--groups 96] [--candidates 4] [--dimension 1024]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch
from cectrain.reward.terms import total_reward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=96)
    parser.add_argument("--candidates", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for size in options.candidates:
        shape = (options.groups, size, options.dimension)
        references = rng.normal(size=(options.groups, options.dimension))
        vectors = (references[:, None] + 0.3 * rng.normal(size=shape)).astype(np.float32)
        texts = ["甲"] * options.groups
        groups = [["乙"] * size] * options.groups
        total_reward(Batch(RewardConfig(), texts, texts, groups, vectors, references))
        times = []
        for _ in range(options.repeats):
            start = time.perf_counter()
            total_reward(Batch(RewardConfig(), texts, texts, groups, vectors, references))
            times.append(time.perf_counter() - start)
        print(
            f"P={options.groups} L={size} D={options.dimension}: {1e3 * np.median(times):.2f} ms a "
            f"batch (median of {options.repeats}), "
            f"{1e6 * np.median(times) / options.groups:.1f} µs a group"
        )


if __name__ == "__main__":
    main()
