"""The strength of the prior, chosen by cross-validation within the sample."""

from __future__ import annotations

import numpy as np

from cecdata.audit.model import bits
from cecdata.common.progress import Advance, silent
from cecdata.fit.entries import Entries, Floats
from cecdata.fit.minimise import minimum
from cecdata.fit.posterior import Parameters, Posterior

# In errors; infinity leaves the recipe's weights unchanged.
STRENGTHS = (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, float("inf"))
FOLDS = 5


def best_strength(entries: Entries, progress: Advance = silent) -> tuple[float, dict[float, float]]:
    """Return the strength with the fewest held-out bits per error, and the bits of each.

    Distinct errors, sorted by code point, are dealt to five folds; each fold is predicted from the
    other four. Only the sample is used; of equally good strengths the greatest is taken.
    """
    fold = np.arange(len(entries.count)) % FOLDS
    held_out: dict[float, float] = {}
    for strength in STRENGTHS:
        spent = 0.0
        for k in range(FOLDS):
            seen = np.where(fold == k, 0.0, entries.count)
            vector = fitted(entries, strength, seen)
            held = (entries.count - seen) * bits(Posterior(entries, 1.0).chances(vector))
            spent += float(held.sum())
            progress("fit", 1, len(STRENGTHS) * FOLDS)
        held_out[strength] = spent / float(entries.count.sum())
    return min(held_out, key=lambda strength: (round(held_out[strength], 6), -strength)), held_out


def fitted(entries: Entries, strength: float, count: Floats) -> Floats:
    """Return the most likely parameters at a strength; zeros at an infinite one."""
    start = np.zeros(Parameters.number(entries))
    if not np.isfinite(strength) or not count.any():
        return start
    posterior = Posterior(entries, strength)
    return minimum(lambda vector: posterior(vector, count), start)
