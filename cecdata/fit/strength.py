"""How much a sample is trusted: the strength of the prior that predicts its own errors best."""

from __future__ import annotations

import numpy as np

from cecdata.audit.model import bits
from cecdata.fit.entries import Entries, Floats
from cecdata.fit.minimise import minimum
from cecdata.fit.posterior import Parameters, Posterior

# In errors; infinity leaves the recipe's weights as they are.
STRENGTHS = (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, float("inf"))
FOLDS = 5


def best_strength(entries: Entries) -> tuple[float, dict[float, float]]:
    """The strength of the least held-out bits per error, and those bits of every strength.

    Distinct errors, by code point, are dealt to five folds; each fold is predicted from the other
    four. Nothing but the sample is looked at; of equal strengths the greater is taken.
    """
    fold = np.arange(len(entries.count)) % FOLDS
    found: dict[float, float] = {}
    for strength in STRENGTHS:
        spent = 0.0
        for k in range(FOLDS):
            seen = np.where(fold == k, 0.0, entries.count)
            vector = fitted(entries, strength, seen)
            held = (entries.count - seen) * bits(Posterior(entries, 1.0).chances(vector))
            spent += float(held.sum())
        found[strength] = spent / float(entries.count.sum())
    return min(found, key=lambda strength: (round(found[strength], 6), -strength)), found


def fitted(entries: Entries, strength: float, count: Floats) -> Floats:
    """The most likely parameters at that strength; zeros, the recipe, at an infinite one."""
    start = np.zeros(Parameters.number(entries))
    if not np.isfinite(strength) or not count.any():
        return start
    posterior = Posterior(entries, strength)
    return minimum(lambda vector: posterior(vector, count), start)
