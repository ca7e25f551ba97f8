"""The report of compare.py: a table and figures of the corpora that have been scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cecbench.report.figures import Point, bars, intervals
from cectrain.protocols.report import write_report

SETS = ("car", "cot", "gam", "mec", "cscd-ns")
DRAWS = 2000
SCORES = """F1 is that of CSCD-NS, of corrected sentences, in per cent; the mean is over the sets.
Intervals are 95 %, over sentences and, where there are several, seeds. The difference is from the
first corpus, with the same sentences and seeds drawn for both."""
FILES = """`least` is the confidence from which an edit is made, `usable` the number of pairs with
substitutions alone. `VARIANT/SEED/SET.txt` has the predictions, one line a sentence, and
`VARIANT/SEED/score.json` the signatures and the counts by sentence."""
HEAD = ("corpus", "seeds", "mean F1", "difference", *SETS, "changed", "least", "usable")


@dataclass(frozen=True)
class Scored:
    """The runs of one corpus, by seed: each the content of its score.json."""

    name: str
    runs: dict[int, dict[str, Any]]

    def mean(self, of: str, key: str) -> float:
        """Return the mean over the seeds of a number of a set; None (no change at all) is 0."""
        return float(np.mean([run["sets"][of][key] or 0.0 for run in self.runs.values()]))

    @property
    def f1(self) -> float:
        return float(np.mean([self.mean(of, "f1") for of in SETS]))

    @property
    def changed(self) -> float:
        return float(np.mean([self.mean(of, "over_correction") for of in SETS]))

    @cached_property
    def drawn(self) -> np.ndarray:
        """Mean F1 over the sets [DRAWS], of drawn seeds and sentences; the same draws for all."""
        runs = [[np.array(run["sets"][of]["counts"]) for of in SETS] for run in self.runs.values()]
        generator = np.random.default_rng(0)
        means = np.empty(DRAWS)
        for draw in range(DRAWS):
            seed, total = int(generator.integers(len(runs))), 0.0
            for table in runs[seed]:
                times = np.bincount(generator.integers(len(table), size=len(table)))
                tp, predicted, gold = times @ table[: len(times)]
                total += 2 * tp / max(1, predicted + gold)
            means[draw] = 100 * total / len(SETS)
        return means

    def row(self, first: Scored) -> list[str]:
        (low, high), (near, far) = (
            np.quantile(means, (0.025, 0.975)) for means in (self.drawn, self.drawn - first.drawn)
        )
        return [
            self.name,
            ", ".join(map(str, self.runs)),
            f"{self.f1:.1f} ({low:.1f}–{high:.1f})",
            "" if self is first else f"{near:+.1f} to {far:+.1f}",
            *(f"{self.mean(of, 'f1'):.1f}" for of in SETS),
            f"{100 * self.changed:.1f} %",
            ", ".join(str(run["least"]) for run in self.runs.values()),
            f"{np.mean([run['usable'] for run in self.runs.values()]):,.0f}",
        ]

    def facts(self) -> dict[str, Any]:
        """Return what a program may ask, as JSON values."""
        return {
            "mean_f1": self.f1,
            "interval": np.quantile(self.drawn, (0.025, 0.975)).tolist(),
            "f1": {of: self.mean(of, "f1") for of in SETS},
            "over_correction": {of: self.mean(of, "over_correction") for of in SETS},
            "signatures": {
                str(seed): [run["sets"][of]["signature"] for of in SETS]
                for seed, run in self.runs.items()
            },
        }


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
    labels = [one.name for one in scored]
    means = {
        one.name: Point(one.f1, *np.quantile(one.drawn, (0.025, 0.975)).tolist()) for one in scored
    }
    by_set = {of: {one.name: Point(one.mean(of, "f1")) for one in scored} for of in SETS}
    changed = {one.name: Point(100 * one.changed) for one in scored}
    figures = [
        intervals("Mean F1, %", labels, {"mean F1": means}, {}),
        bars("F1 by set, %", labels, by_set),
        bars("Error-free sentences changed, %", labels, {"changed": changed}),
    ]
    table = (list(HEAD), [one.row(scored[0]) for one in scored])
    facts = {"command": command, "corpora": {one.name: one.facts() for one in scored}}
    title = "Corpora of errors, by the corrector that each one trains"
    notes = [f"`{command}`", SCORES, FILES]
    return write_report(out / "compare", title, notes, figures, [table], facts)
