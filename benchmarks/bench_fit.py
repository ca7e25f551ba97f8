"""Measure `cecdata fit` on 200 errors of one set by the bits per error on the other sets.

    python benchmarks/bench_fit.py --shared $CEC_SHARED [--seeds 3]

For each set and seed, rows are drawn at random until they hold 200 substituted characters
(gam has only 159), the recipe `typed` is fitted to them, and bits per error are measured on the
other sets and on the rest of the same one. The script prints the change against the shipped recipe,
as means over the seeds; also the strengths chosen and the CPU seconds of a fit. The last line is a
bound: the weights fitted to all errors that are tested, with the weakest prior.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from pathlib import Path

import numpy as np

from cecdata.audit import Errors, bits, errors_of
from cecdata.config import load
from cecdata.fit.fit import STRENGTHS, best_strength, fitted
from cecdata.fit.posterior import Parameters, Posterior, entries_of

SETS = {name: f"lemon_v2/{name}.txt" for name in ("car", "cot", "gam", "mec")}
SETS["cscd"] = "cscd-ns/dev.tsv"
SAMPLE = 200
Pairs = list[tuple[str, str]]


def pairs_of(path: Path) -> Pairs:
    """Return the wrong pairs of a set.

    LEMON's characters are separated by spaces; CSCD-NS has a column before the pair.
    """
    found = []
    for line in path.read_text("utf-8").splitlines():
        source, target = line.split("\t")[-2:]
        if path.suffix == ".txt":
            source, target = source.replace(" ", ""), target.replace(" ", "")
        if source != target:
            found.append((source, target))
    return found


def drawn(pairs: Pairs, seed: int) -> tuple[Errors, Errors]:
    """Return a sample and the rest: rows in random order, cut once the sample has enough errors."""
    mixed = sorted(pairs)
    random.Random(seed).shuffle(mixed)
    tokens = cut = 0
    while tokens < SAMPLE and cut < len(mixed):
        tokens += errors_of(iter(mixed[cut : cut + 1])).tokens
        cut += 1
    return errors_of(iter(mixed[:cut])), errors_of(iter(mixed[cut:]))


class Tested:
    """Errors that recipes are measured on; the candidates of their right characters are cached."""

    def __init__(self, errors: Errors) -> None:
        self.tokens = errors.tokens
        self.entries = entries_of(errors, load("typed").prior)
        self.model = Posterior(self.entries, 1.0)
        self.start = np.zeros(Parameters.number(self.entries))

    def bits(self, vector: np.ndarray) -> float:
        """Return the bits per error; errors outside the standard characters get the tail's."""
        e = self.entries
        outside = (self.tokens - e.count.sum()) * float(bits(np.zeros(1))[0])
        return float((e.count * bits(self.model.chances(vector))).sum() + outside) / self.tokens


def line(name: str, cells: list[float | None]) -> str:
    return f"{name:24}" + "".join("       –" if v is None else f"{v:8.2f}" for v in cells)


def table(sets: dict[str, Pairs], seeds: int) -> None:
    prior = load("typed").prior
    whole = {name: errors_of(iter(pairs)) for name, pairs in sets.items()}
    tested = {name: Tested(errors) for name, errors in whole.items()}
    before = {name: it.bits(it.start) for name, it in tested.items()}
    print(f"{'bits per error on':24}" + "".join(f"{n:>8}" for n in whole) + "    rest")
    print(line("  as it ships", list(before.values())))
    others: list[float] = []
    for name, pairs in sets.items():
        changes: dict[str, list[float]] = {n: [] for n in (*whole, "rest")}
        strengths, spent = [], 0.0
        for seed in range(seeds):
            sample, rest = drawn(pairs, seed)
            started = time.process_time()
            entries = entries_of(sample, prior)
            strength, _ = best_strength(entries)
            vector = fitted(entries, strength, entries.count)
            spent += (time.process_time() - started) / seeds
            strengths.append(f"{strength:g}")
            for n in whole:
                if n != name:
                    changes[n].append(tested[n].bits(vector) - before[n])
            if rest.tokens >= SAMPLE:
                left = Tested(rest)
                changes["rest"].append(left.bits(vector) - left.bits(left.start))
        means = [statistics.mean(c) if c else None for c in changes.values()]
        others += [m for n, m in zip(changes, means, strict=True) if m is not None and n != "rest"]
        said = f" strength {' '.join(strengths)}; {spent:.1f} s"
        print(line(f"  fitted to {name}", means), said, flush=True)
    met = sum(m <= -0.5 for m in others)
    print(f"  mean on other sets {statistics.mean(others):.2f}; {met} of {len(others)} at -0.5")
    bound = [
        it.bits(fitted(it.entries, STRENGTHS[0], it.entries.count)) - before[n]
        for n, it in tested.items()
    ]
    print(line("  fitted to itself, all", bound), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    shared = os.environ.get("CEC_SHARED")
    options.add_argument("--shared", type=Path, default=shared, required=shared is None)
    options.add_argument("--seeds", type=int, default=3)
    given = options.parse_args()
    sets = {name: pairs_of(Path(given.shared) / "bench" / path) for name, path in SETS.items()}
    table(sets, given.seeds)


if __name__ == "__main__":
    main()
