"""Measure the CPU time per pair of the Polars expression.

It is compared with the kernel and with a build's third stage without files. `Fresh` is measured as
well, as dictionaries and as tables. All use the paper's recipe without the cosine and take turns in
one process; the figures are medians.

    python benchmarks/bench_frames.py [--pool clean.parquet] [--rounds 9]
"""

from __future__ import annotations

import statistics

import polars as pl
from common import arguments, interleaved, machine, ratio, recipe, sentences

import cecdata.polars  # noqa: F401 - registers the namespace `cec` of expressions
from cecdata.builds.corrupt import pairs_of_chunk
from cecdata.frames.fresh import Fresh
from cecdata.frames.rates import rates
from cecdata.perturbation import kernel
from cecdata.perturbation.engine import Perturber, scratch, sentence_arrays

SENTENCES = 65_536


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    batch = sentences(options.pool, SENTENCES)
    frame = pl.DataFrame({"text": pl.from_arrow(batch.column("text"))})
    config = recipe()
    frozen = rates(frame=frame, filters=("levenshtein",))
    engine = Perturber.of(config, frozen)
    given, space = sentence_arrays(batch), scratch(config, engine.tables)
    output = engine.output(given)
    expression = pl.col("text").cec.perturb(rates=frozen)
    fresh = Fresh(frame=frame, filters=("levenshtein",))
    works = {
        "kernel": lambda: kernel.perturb(given, engine.draws, engine.tables.arrays, space, output),
        "build, no files": lambda: list(pairs_of_chunk(engine, batch, len(batch))),
        "expression": lambda: frame.select(expression),
        "fresh, tables": lambda: list(fresh.tables(0)),
        "fresh, dictionaries": lambda: sum(1 for _ in fresh.rows(0)),
    }
    for work in works.values():
        work()
    seconds = interleaved(works, options.rounds)
    print(f"{machine()}; {SENTENCES:,} sentences; medians of {options.rounds} rounds")
    for name, values in seconds.items():
        pairs = SENTENCES * (1 if name.startswith("fresh") else config.copies)
        each = statistics.median(values) / pairs
        print(f"{name:22}{1e9 * each:8.0f} ns a pair{1 / each:14,.0f} pairs a CPU-second")
    for name in ("kernel", "build, no files"):
        print(f"expression / {name:18}{ratio(seconds['expression'], seconds[name]):6.2f}")


if __name__ == "__main__":
    main()
