"""The report of compare.py: tables of the corpora that have been scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments.report import write_report

SETS = ("car", "cot", "gam", "mec", "cscd-ns")
DRAWS = 2000
BOUNDS = (0.025, 0.975)
TITLE = "Corpora of errors, by the corrector that each one trains"
SCORES = """F1 is of corrected sentences, by the scorer of CSCD-NS, in per cent; the mean is over
sets. `changed` is the share of error-free sentences that are changed. Intervals are 95 % bootstrap
intervals over seeds, of which as many are drawn as there are, and sentences. A difference is from
the first corpus, by the seeds that both have, with the same sentences drawn for both."""
FILES = """`least` is the confidence from which an edit is made, `usable` the number of pairs with
substitutions alone, `characters` how many characters are changed in one of them.
`VARIANT/SEED/SET.txt` has the predictions, one line a sentence, `VARIANT/SEED/settings.json` the
settings, and `VARIANT/SEED/score.json` the signatures and the counts by sentence."""
HEAD = ("corpus", "seeds", "mean F1", "difference", *SETS, "changed", "difference")
MORE = ("least", "usable", "characters")
EQUAL = """Mean F1 where 5 % of the error-free sentences change: the least confidence is chosen with
the labels for each set and run, so that all corpora are compared at the same over-correction."""


@cache
def times(at: int, rows: int) -> np.ndarray:
    """Return how often each row of the set number `at` is drawn [DRAWS, rows]."""
    drawn = np.random.default_rng([0, at]).multinomial(rows, np.full(rows, 1 / rows), size=DRAWS)
    return drawn.astype(np.float64)  # for the matrix product, whose sums are exact


def f1(counts: np.ndarray) -> np.ndarray:
    """Return the terms of F1 from (true positives, predicted, gold) of each row [rows, 2]."""
    return np.stack([2 * counts[:, 0], counts[:, 1] + counts[:, 2]], axis=1)


def over_correction(counts: np.ndarray) -> np.ndarray:
    """Return the terms of the share of error-free sentences that change [rows, 2]."""
    clean = counts[:, 2] == 0
    return np.stack([counts[:, 1] * clean, clean], axis=1)


@dataclass(frozen=True)
class Scored:
    """The runs of one corpus, by seed: each the content of its score.json."""

    name: str
    runs: dict[int, dict[str, Any]]
    part: str = "sets"  # of score.json, or "equal"

    def mean(self, of: str, key: str) -> float:
        """Return the mean over the seeds of a number of a set; None (no change at all) is 0."""
        return float(np.mean([run[self.part][of][key] or 0.0 for run in self.runs.values()]))

    @property
    def f1(self) -> float:
        return float(np.mean([self.mean(of, "f1") for of in SETS]))

    @property
    def changed(self) -> float:
        return 100 * float(np.mean([self.mean(of, "over_correction") for of in SETS]))

    def drawn(self, terms: Callable[[np.ndarray], np.ndarray], seeds: Sequence[int]) -> np.ndarray:
        """Return the mean over the sets and over drawn seeds, in per cent [DRAWS].

        As many seeds are drawn as there are, with replacement, and sentences of each set likewise.
        All corpora get the same draws.
        """
        of_seed = []
        for seed in seeds:
            part, total = self.runs[seed][self.part], np.zeros(DRAWS)
            for at, of in enumerate(SETS):
                counts = np.array(part[of]["counts"])
                above, below = (times(at, len(counts)) @ terms(counts)).T
                total += above / np.maximum(1, below)
            of_seed.append(100 * total / len(SETS))
        chosen = np.random.default_rng(1).integers(len(seeds), size=(DRAWS, len(seeds)))
        return np.stack(of_seed, axis=1)[np.arange(DRAWS)[:, None], chosen].mean(axis=1)

    @cached_property
    def interval(self) -> list[float]:
        """Return the 95 % interval of the mean F1."""
        return np.quantile(self.drawn(f1, list(self.runs)), BOUNDS).tolist()

    def difference(self, first: Scored, terms: Callable[[np.ndarray], np.ndarray]) -> list[float]:
        """Return the 95 % interval of the difference from another corpus, by the common seeds."""
        common = [seed for seed in self.runs if seed in first.runs]
        if self.name == first.name or not common:
            return []
        apart = self.drawn(terms, common) - first.drawn(terms, common)
        return np.quantile(apart, BOUNDS).tolist()

    def cells(self, first: Scored) -> list[str]:
        """Return the corpus, its seeds, mean F1 and F1 by set, over-correction, differences."""
        low, high = self.interval
        return [
            self.name,
            ", ".join(map(str, self.runs)),
            f"{self.f1:.1f} ({low:.1f}–{high:.1f})",
            _interval(self.difference(first, f1)),
            *(f"{self.mean(of, 'f1'):.1f}" for of in SETS),
            f"{self.changed:.1f} %",
            _interval(self.difference(first, over_correction)),
        ]

    def row(self, first: Scored) -> list[str]:
        """Return `cells`, and what is known of the threshold and of the pairs."""
        runs = self.runs.values()
        return [
            *self.cells(first),
            ", ".join(str(run["least"]) for run in runs),
            f"{np.mean([run['usable'] for run in runs]):,.0f}",
            f"{np.mean([run['characters'] for run in runs]):.2f}",
        ]

    def pairs(self) -> dict[str, list[float]]:
        """Return the tuned threshold and what is known of the pairs, by seed."""
        return {key: [run[key] for run in self.runs.values()] for key in MORE}

    def facts(self, first: Scored) -> dict[str, Any]:
        """Return the scores of `part`, intervals and signatures as JSON values, for programs.

        `counts` are sentences, summed over the seeds: true positives, changed, with errors. So
        TP / changed is precision, and TP / with errors is recall.
        """
        counts = {
            of: [row for run in self.runs.values() for row in run[self.part][of]["counts"]]
            for of in SETS
        }
        return {
            "mean_f1": self.f1,
            "interval": self.interval,
            "difference": self.difference(first, f1),
            "f1": {of: self.mean(of, "f1") for of in SETS},
            "counts": {of: np.sum(counts[of], axis=0).tolist() for of in SETS},
            "over_correction": {of: self.mean(of, "over_correction") for of in SETS},
            "over_correction_difference": self.difference(first, over_correction),
            "signatures": {
                str(seed): [run[self.part][of]["signature"] for of in SETS]
                for seed, run in self.runs.items()
            },
        }


def _interval(bounds: Sequence[float]) -> str:
    """Return the two bounds with signs; −0.0 is a bound below 0."""
    return " to ".join(f"{bound:+.1f}" for bound in bounds)


def write_results(out: Path, names: Sequence[str], seeds: Sequence[int], command: str) -> str:
    """Write compare.html, .md and .json of the runs in `out`; return the Markdown, if any."""
    scored = []
    for name in names:
        files = {seed: out / name / str(seed) / "score.json" for seed in seeds}
        found = {seed: file.read_text("utf-8") for seed, file in files.items() if file.is_file()}
        if found:
            scored.append(Scored(name, {seed: json.loads(text) for seed, text in found.items()}))
    if not scored:
        return ""
    equal = [replace(one, part="equal") for one in scored]
    tables = [
        ([*HEAD, *MORE], [one.row(scored[0]) for one in scored]),
        (list(HEAD), [one.cells(equal[0]) for one in equal]),
    ]
    facts: dict[str, Any] = {
        "command": command,
        "corpora": {one.name: one.facts(scored[0]) | one.pairs() for one in scored},
        "equal": {one.name: one.facts(equal[0]) for one in equal},
    }
    notes = [f"`{command}`", SCORES, FILES, EQUAL]
    return write_report(out / "compare", TITLE, notes, tables, facts)
