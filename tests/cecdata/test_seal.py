"""One seal for every file that proves itself."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.codec import SEAL, BrokenSealError, is_sealed, sealed, unsealed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text('a"\\\n好𠀀é😀{}:')
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a"好', max_size=3), inner),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.text('ab"好\n', max_size=4), VALUES, max_size=5)


@given(DOCUMENTS, st.sampled_from([None, 1, 2]))
def test_a_sealed_object_comes_back(document, indent):
    """What was sealed is read back, and the seal is the SHA-256 with its own digits as zeros."""
    data = sealed(document, indent=indent)
    assert unsealed(data) == document
    seal = json.loads(data)[SEAL]
    assert data.count(b"\n", 0, -1) == 0 or indent is not None
    assert hashlib.sha256(data.replace(seal.encode(), b"0" * 64)).hexdigest() == seal


@given(DOCUMENTS, st.sampled_from([None, 1]), st.data())
def test_any_flipped_bit_breaks_the_seal(document, indent, data):
    """No bit can be changed, and nothing added, cut off or put before."""
    whole = sealed(document, indent=indent)
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for other in (bytes(flipped), whole + b" ", whole[:-1], whole[place + 1 :], b" " + whole):
        assert not is_sealed(other)
        with pytest.raises(ValueError):
            unsealed(other)


def test_an_object_without_a_seal():
    """JSON that carries no seal is told from what is no JSON."""
    with pytest.raises(BrokenSealError, match="checksum does not match"):
        unsealed(b'{"a": 1}\n')
    with pytest.raises(ValueError, match="not a JSON object"):
        unsealed(b"[]")
