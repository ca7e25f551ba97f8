"""Levels, frequencies, widths, and where a text may be cut open."""

from __future__ import annotations

from collections import Counter

import pytest

from cecdata.hanzi import characters


def test_ranges_are_sorted_and_apart():
    """The arrays for kernels are int32, sorted, and do not overlap."""
    for firsts, lasts in (characters.cluster_ranges("before"), characters.cluster_ranges("after")):
        assert firsts.dtype == lasts.dtype == "int32"
        assert (firsts <= lasts).all()
        assert (firsts[1:] > lasts[:-1]).all()


def test_levels_are_those_of_the_standard():
    """The list has 3,500, 3,000 and 1,605 characters in its three levels."""
    signs = characters.standard_characters()
    levels = Counter(characters.table("characters")[sign][0] for sign in signs)
    assert levels == {"1": 3500, "2": 3000, "3": 1605}


def test_frequency_is_a_distribution():
    """Every standard character may occur, and together they make up a million."""
    values = [characters.frequency(sign) for sign in characters.standard_characters()]
    assert min(values) > 0
    assert sum(values) == pytest.approx(1e6, rel=1e-3)
    assert characters.frequency("的") > 1000 > characters.frequency("彧")
    assert characters.frequency("A") == 0


def test_traditional_forms():
    """Simplified characters know the forms they replaced, and unchanged ones have none."""
    assert set(characters.traditional_forms("发")) == set("發髮")
    assert characters.traditional_forms("国") == "國"
    assert characters.traditional_forms("人") == ""
    assert "峯" in characters.variant_forms("峰")
