"""The choice of the sentences that are held out for validation, by their id alone."""

from __future__ import annotations

import numpy as np

from cecdata.common.errors import UsageError
from cecdata.common.kernels.mix import splitmix64
from cecdata.corpus.dedup import Mask
from cecdata.corpus.xxh3 import Int64s, Uint64s

_PURPOSE = np.uint64(0x53504C4954000001)  # "SPLIT": keeps the draw apart from other uses of the id


def is_validation(ids: Uint64s | Int64s, holdout: float) -> Mask:
    """Return whether each sentence is held out; `holdout` is the fraction of all ids that are.

    A larger holdout only adds sentences. Order, seed and shards do not matter.

    >>> is_validation(np.arange(5, dtype=np.uint64), 0.0).any()
    np.False_
    """
    if not 0.0 <= holdout <= 1.0:
        raise UsageError(f"holdout = {holdout} must be from 0 to 1")
    if holdout == 1.0:
        return np.ones(len(ids), dtype=np.bool_)
    return splitmix64(ids.view(np.uint64) ^ _PURPOSE) < np.uint64(int(holdout * 2**64))
