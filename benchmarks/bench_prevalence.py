"""Measure the threshold that follows from a text's share of errors against the best one.

    python benchmarks/bench_prevalence.py lemon/car lemon/cot lemon/gam lemon/mec cscd-ns/dev

Of each set, its rows with an error and those without are mixed, one with an error in 2, 10, 50 and
200. The share is estimated on 2,000 rows drawn so; F1 is that of all rows, weighed by the share.
"""

from __future__ import annotations

import random
import sys

import numpy as np

from cecbench.benchmarks.catalogue import load_benchmark
from cectrain.corrector import whole_text
from cectrain.corrector.combined import DEFAULT
from cectrain.corrector.correction import Correction, apply_edits
from cectrain.corrector.corrector import Corrector

THRESHOLDS = [*np.arange(0.3, 0.86, 0.05).round(2).tolist(), 0.9, 0.95, 0.98]


def f1(
    weights: np.ndarray, corrections: list[Correction], targets: list[str], least: float
) -> float:
    edits = [[edit for edit in c.edits if edit.confidence >= least] for c in corrections]
    answers = np.array(
        [apply_edits(c.source, made) for c, made in zip(corrections, edits, strict=True)]
    )
    changed = answers != np.array([correction.source for correction in corrections])
    right = changed & (answers == np.array(targets))
    return float(200 * weights[right].sum() / (weights[changed].sum() + 1))


losses = []
corrector = Corrector(confidence=whole_text.SEEN)
for name in sys.argv[1:]:
    rows = load_benchmark(name).rows
    made, targets = corrector.correct([row.source for row in rows]), [row.target for row in rows]
    greatest = [max(whole_text.find_greatest(correction), default=0.0) for correction in made]
    wrong = np.array([row.source != row.target for row in rows])
    for every in (2, 10, 50, 200):
        weights = np.where(wrong, 1 / wrong.sum(), (every - 1) / (~wrong).sum())
        drawn = random.Random(1).choices(greatest, weights.tolist(), k=2000)
        share = whole_text.estimate_prevalence(drawn)
        threshold = whole_text.find_threshold(share, DEFAULT.least) if share else DEFAULT.least
        chosen, usual = (f1(weights, made, targets, t) for t in (threshold, DEFAULT.least))
        best = max(f1(weights, made, targets, t) for t in THRESHOLDS)
        losses.append((best - chosen, best - usual))
        print(f"{name} 1/{every}: estimate {share and round(share, 3)}, threshold {threshold}: "
              f"F1 {chosen:.1f}, by default {usual:.1f}, best {best:.1f}", flush=True)  # fmt: skip
for what, loss in zip(("threshold by the share", "default"), np.transpose(losses), strict=True):
    print(f"{what}: {loss.mean():.2f} below the best on average, {loss.max():.1f} at most")
