"""Levenshtein distance in code points (paper, "Cleaning and validation": at most 8).

Nothing is measured here: the engine writes the distance into each pair.
"""

from __future__ import annotations

import numpy as np

from cecdata.config import Config
from cecdata.filters.base import Filter
from cecdata.perturbation.pairs import Mask, Pairs


def _too_far(pairs: Pairs, config: Config) -> Mask:
    return np.asarray(np.asarray(pairs.column("distance")) > config.max_distance)


FILTER = Filter("distance", _too_far)
