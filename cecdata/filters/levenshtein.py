"""Levenshtein distance in code points (paper, "Cleaning and validation": at most 8).

The engine knows it exactly from its own edits and has written it; this proves its place in the
table of filters and recomputes it for pairs that come without.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cecdata.filters.base import Settings
from cecdata.perturbation.engine import Pairs


def measure(pairs: Pairs, _: Settings) -> Pairs:
    """The column `distance`, computed where it is null."""
    if pairs.table.column("distance").null_count == 0:
        return pairs
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    found = cpdist(
        pairs.table.column("source").to_pylist(),
        pairs.table.column("target").to_pylist(),
        scorer=Levenshtein.distance,
        dtype=np.int16,
    )
    at = pairs.table.schema.get_field_index("distance")
    field = pairs.table.schema.field(at)
    table = pairs.table.set_column(at, field, pa.array(found, pa.int16()))
    return replace(pairs, table=table)
