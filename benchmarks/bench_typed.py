"""Measure the CPU time per pair of the recipe `typed`, and of its parts.

`one` is the same recipe with one proposal, so that no language model takes part; `paper` is the
recipe of that name. All take turns in one run. A build reads, normalises, calibrates, perturbs,
validates and writes, with one worker; `build` has no cosine, `with cosine` is what a user gets by
default. The kernel is also measured alone. Not counted: compiling the kernels and the confusion
sets (a build before the first round).

    python benchmarks/bench_typed.py [--pool clean.parquet] [--rounds 5] [--sentences 100000]
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

GOAL = 1.3
COSINES = 2_000  # sentences of the builds with a cosine, which takes most of their time


def configurations(*filters: str) -> dict[str, Config]:
    """Return `typed`, `one` and `paper`."""
    return {
        "typed": load("typed", filters=filters),
        "one": load("typed", filters=filters, proposals=1),
        "paper": load("paper", filters=filters),
    }


def describe(title: str, seconds: dict[str, list[float]], pairs: int) -> str:
    """Return the nanoseconds per pair of each, and the ratio with its goal."""
    cells = "".join(
        f"{name:>8}{statistics.median(values) / pairs * 1e9:8.0f} ns"
        for name, values in seconds.items()
    )
    value = ratio(seconds["typed"], seconds["one"])
    verdict = "met" if value <= GOAL else "MISSED"
    return f"  {title:12}{cells}   typed / one {value:.2f}, goal ≤ {GOAL:g}: {verdict}"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=100_000)
    options = parser.parse_args()
    batch = sentences(options.pool, options.sentences)
    with tempfile.TemporaryDirectory() as name:
        corpora = {}
        for count in (len(batch), min(len(batch), COSINES)):
            corpora[count] = Path(name) / f"{count}.parquet"
            table = pa.Table.from_batches([batch.slice(0, count)]).select(["text"])
            pq.write_table(table, corpora[count])

        def builds(count: int, *filters: str) -> dict[str, object]:
            return {
                key: lambda key=key, config=config: build(
                    [str(corpora[count])], Path(name) / key, config, overwrite=True
                )
                for key, config in configurations(*filters).items()
            }

        works = {key: Work.of(c, batch) for key, c in configurations("levenshtein").items()}
        print(f"{machine()}; one thread; medians of {options.rounds} rounds")
        for title, part, count in (
            ("kernel", {key: work.numba for key, work in works.items()}, len(batch)),
            ("build", builds(len(batch), "levenshtein"), len(batch)),
            ("with cosine", builds(min(corpora), "levenshtein", "cosine"), min(corpora)),
        ):
            interleaved(part, 1)
            print(describe(title, interleaved(part, options.rounds), 4 * count), flush=True)


if __name__ == "__main__":
    main()
