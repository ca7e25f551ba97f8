"""The quick version of `python tests/fuzz/flips.py`."""

from __future__ import annotations

import pytest
from flips import KINDS, flips


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_flipped_bit_is_noticed_and_never_used(kind):
    """Of one-bit flips over all files of a kind, all are noticed and none gives a wrong row."""
    count = round(200 * kind.share)
    found = flips(kind, count, seed=7)
    assert found["noticed"] == count, found
    assert found["wrong"] == 0, found
