"""Measure how many sentences `--perplexity words` rejects: clean ones, and the same ones scrambled.

The sentences are held out from the shipped n-gram model. A scrambled one has its characters in
random order.

    python benchmarks/bench_perplexity.py [--pool clean.parquet] [--count 20000]
"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from bench_clean import drawn
from common import arguments, cpu_s, machine

from cecdata.corpus.quality import perplexity

LIMITS = (500, 1000, 2000, 3000)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--count", type=int, default=20_000, help="sentences  [20000]")
    asked = parser.parse_args()
    print(machine())
    clean = drawn(asked.pool, asked.count)["text"].to_list()
    draw = random.Random(1)
    scrambled = ["".join(draw.sample(text, len(text))) for text in clean]
    perplexity(pa.array(["编译"]), "words")
    columns = {"clean": pa.array(clean), "scrambled": pa.array(scrambled)}
    values = {name: perplexity(column, "words") for name, column in columns.items()}
    for limit in LIMITS:
        shares = (f"{name} {np.mean(own > limit):7.2%}" for name, own in values.items())
        print(f"--max-perplexity {limit:5}: rejected", ", ".join(shares))
    seconds = cpu_s(lambda: perplexity(columns["clean"], "words"))
    print(f"{sum(len(text.encode()) for text in clean) / 1e6 / seconds:.1f} MB a CPU second")


if __name__ == "__main__":
    main()
