"""Readings and their shares; who sounds like whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.hanzi import readings as sounds
from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.readings import confusion

STANDARD = set(standard_characters())
CHARACTERS = st.sampled_from(standard_characters())
SYLLABLES = sorted({r.syllable for sign in STANDARD for r in sounds.readings(sign)})


def test_every_character_has_readings_whose_shares_make_one():
    """Shares are fractions of all occurrences; tones are 1 to 5; syllables are plain letters."""
    for sign in STANDARD:
        found = sounds.readings(sign)
        assert sum(reading.share for reading in found) == pytest.approx(1, abs=0.004)
        assert [r.share for r in found] == sorted((r.share for r in found), reverse=True)
        assert all(1 <= r.tone <= 5 and r.syllable.isascii() for r in found)
        assert len({str(reading) for reading in found}) == len(found)
        assert sounds.common_readings(sign)


@given(CHARACTERS, CHARACTERS)
@settings(deadline=None)
def test_sound_relations_are_symmetric(left, right):
    """Same and near sound do not depend on who is compared to whom, and exclude each other."""
    assert sounds.same_sound(left, right) == sounds.same_sound(right, left)
    assert sounds.near_sound(left, right) == sounds.near_sound(right, left)
    assert not (sounds.same_sound(left, right) and sounds.near_sound(left, right))


@given(CHARACTERS)
@settings(max_examples=25, deadline=None)
def test_the_list_agrees_with_the_pairwise_relation(sign):
    """The list holds exactly the standard characters for which the relation holds."""
    same = {other for other in STANDARD if other != sign and sounds.same_sound(sign, other)}
    assert set(sounds.homophones(sign)) == same


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("妈", "马", "tone"),
        ("是", "四", "initial:sh/s"),
        ("知", "资", "initial:zh/z"),
        ("吃", "词", "initial:ch/c"),
        ("牛", "刘", "initial:n/l"),
        ("湖", "服", "initial:h/f"),
        ("热", "乐", "initial:r/l"),
        ("蓝", "狼", "final:an/ang"),
        ("身", "生", "final:en/eng"),
        ("心", "星", "final:in/ing"),
        ("先", "香", "final:ian/iang"),
        ("关", "光", "final:uan/uang"),
        ("您", "民", "keyboard"),
        ("喝", "很", "edit1"),
        ("人", "狗", None),
        ("教", "叫", None),
    ],
)
def test_named_confusions(left, right, kind):
    """Each confusion bears the name of what is confused."""
    assert sounds.near_sound(left, right) == kind


@given(st.sampled_from(SYLLABLES), st.sampled_from(SYLLABLES))
def test_confusion_is_symmetric_and_reflexive_as_tone(left, right):
    """Two syllables are confused both ways; a syllable with itself in tone alone."""
    assert confusion(left, right) == confusion(right, left)
    assert (confusion(left, right) == "tone") == (left == right)
