"""Measure the CPU time per pair of the recipe `realistic`, in full ("on") and reduced ("off").

Off is the same recipe with every weight equal and without the operators that rewrite spans; their
share of the pairs goes to homophones. The recipes `paper` and `context` are measured as well. All
take turns in one run. A build reads, normalises, calibrates, perturbs, validates and writes, with
one worker and no cosine; the kernel is also measured alone. Not counted: compiling the kernels and
the confusion sets (a build before the first round).

    python benchmarks/bench_realistic.py [--pool clean.parquet] [--rounds 5] [--sentences 100000]
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from bench_kernel import Work
from common import arguments, interleaved, machine, ratio, sentences

from cecdata.builds.build import build
from cecdata.config import Config, load
from cecdata.operators import OPERATORS
from cecdata.operators.base import CharConfusions

GOAL, CONTEXT_GOAL = 1.25, 1.3


def configurations() -> dict[str, Config]:
    """Return `on`, `off`, and for comparison the recipes `paper` and `context`."""
    on = load("realistic", filters=("levenshtein",))
    spans = [name for name in on.prior if OPERATORS[name].action == "rewrite"]
    share = sum(on.prior[name] for name in spans)
    prior = dict.fromkeys(spans, 0.0) | {"homophone": on.prior["homophone"] + share}
    bulk = [name for name in on.prior if isinstance(OPERATORS[name].confusions, CharConfusions)]
    flat = {name: {"power": 0.0} for name in bulk}
    off = load("realistic", filters=("levenshtein",), prior=prior, weights=flat)
    others = {name: load(name, filters=("levenshtein",)) for name in ("paper", "context")}
    return {"on": on, "off": off, **others}


def line(title: str, seconds: dict[str, list[float]], pairs: int) -> str:
    """Return the nanoseconds per pair of each, and the ratios with their goals."""
    each = "".join(
        f"{name:>8}{statistics.median(values) / pairs * 1e9:8.0f} ns"
        for name, values in seconds.items()
    )
    goals = (("on", "off", GOAL), ("context", "on", CONTEXT_GOAL))
    ratios = [(a, b, ratio(seconds[a], seconds[b]), goal) for a, b, goal in goals]
    verdicts = "".join(
        f"   {a} / {b} {value:.3f}, goal ≤ {goal:g}: {'met' if value <= goal else 'MISSED'}"
        for a, b, value, goal in ratios
    )
    return f"  {title:8}{each}{verdicts}"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=100_000)
    options = parser.parse_args()
    configs = configurations()
    batch = sentences(options.pool, options.sentences)
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name) / "corpus.parquet"
        pq.write_table(pa.Table.from_batches([batch]).select(["text"]), corpus)
        works = {key: Work.of(config, batch) for key, config in configs.items()}
        kernels = {key: work.numba for key, work in works.items()}
        builds = {
            key: lambda key=key, config=config: build(
                [str(corpus)], Path(name) / key, config, overwrite=True
            )
            for key, config in configs.items()
        }
        for part in (kernels, builds):
            interleaved(part, 1)
        pairs = len(batch) * configs["on"].copies
        print(f"{machine()}; one thread; medians of {options.rounds} rounds; {pairs:,} pairs")
        print(line("kernel", interleaved(kernels, options.rounds), pairs))
        print(line("build", interleaved(builds, options.rounds), pairs))


if __name__ == "__main__":
    main()
