"""Strokes and look-alikes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.hanzi import components as shapes
from cecdata.hanzi.characters import standard_characters

STANDARD = set(standard_characters())
CHARACTERS = st.sampled_from(standard_characters())


def test_every_character_has_look_alikes_in_order():
    """12 to 40 other standard characters, most alike first, each once."""
    for sign in STANDARD:
        found = shapes.look_alikes(sign)
        assert 12 <= len(found) <= 40
        assert set(found) <= STANDARD - {sign}
        values = list(found.values())
        assert values == sorted(values, reverse=True)
        assert all(0 < value <= 1 for value in values)


def _rank(sign, other):
    names = list(shapes.look_alikes(sign))
    return names.index(other) if other in names else len(names) + 20


@pytest.mark.parametrize("pair", ["未末", "己已", "戊戌", "卓桌", "赢嬴", "贷货", "请清", "日曰"])
def test_the_closest_pairs_lead(pair):
    """The most confusing pairs are among each other's first three."""
    assert max(_rank(*pair), _rank(*reversed(pair))) < 3


@given(CHARACTERS)
@settings(deadline=None)
def test_similarity_is_symmetric(sign):
    """A pair has one similarity, whichever list holds it; a character is its own double."""
    assert shapes.similarity(sign, sign) == 1
    for other, similarity in shapes.look_alikes(sign).items():
        assert shapes.similarity(sign, other) == similarity
        assert shapes.similarity(other, sign) == similarity


def test_strokes():
    """Sequences are in the five classes and in writing order."""
    assert [shapes.strokes(sign) for sign in "木国讠"] == ["1234", "25112141", ""]
    assert all(set(shapes.strokes(sign)) <= set("12345") for sign in STANDARD)
    assert shapes.stroke_count("赢") == 17
    assert shapes.look_alikes("A") == {}
    assert shapes.similarity("A", "好") == 0
