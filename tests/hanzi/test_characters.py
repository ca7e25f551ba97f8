"""Levels, frequencies, widths, and where a text may be cut open."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cecdata.common.errors import InputError
from cecdata.hanzi import characters

# Texts rich in what makes clusters: marks, selectors, joiners, flags, keycaps, jamo, viramas.
PIECES = st.sampled_from(
    [
        "好", "𠀀", "a", " ", "。", "e\u0301", "\u0301", "葛\U000e0100", "\ufe0f", "\u200d",
        "\u200c", "👍🏽", "👨\u200d👩\u200d👧", "🏳️\u200d🌈", "🇨", "🇳", "🇨🇳", "1️⃣", "\r\n", "\r",
        "\n", "각", "ᄀ", "ᅡ", "ᆨ", "क्ष", "क", "\u094d", "\u0600", "が", "ｶﾞ",
        "\U000e0067", "\u0e33", "\u3099", "𑂽",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.characters(), max_size=12).map("".join)


@given(TEXTS)
@settings(deadline=None)
@example("👩🏿\u200d❤️\u200d💋\u200d👨🏻好")
def test_insertion_never_parts_a_grapheme_cluster(text):
    """Where an insertion is allowed, UAX #29 sees a boundary between clusters."""
    boundaries = {0, len(text)} | {match.end() for match in regex.finditer(r"\X", text)}
    for place in range(len(text) + 1):
        if characters.insertion_allowed(text, place):
            assert place in boundaries


@given(TEXTS)
@settings(deadline=None)
def test_insertion_is_forbidden_at_boundaries_only_for_stated_reasons(text):
    """A boundary is closed only before a lone mark, after a lone joiner, or between flags."""
    for match in regex.finditer(r"\X", text):
        place = match.end()
        if not characters.insertion_allowed(text, place):
            after_joiner = _in(text[place - 1], characters.joiner_ranges())
            before_mark = place < len(text) and _in(text[place], characters.extend_ranges())
            flags = regex.fullmatch(r"\p{RI}{2}", text[place - 1 : place + 1])
            assert after_joiner or before_mark or flags


def _in(sign, ranges):
    return any(first <= ord(sign) <= last for first, last in zip(*ranges, strict=True))


@given(st.text(alphabet=st.sampled_from(characters.standard_characters()[:500])))
@settings(deadline=None)
def test_insertion_is_allowed_everywhere_in_plain_chinese(text):
    """Han characters never cling together, and the ends of a text are open."""
    assert all(characters.insertion_allowed(text, place) for place in range(len(text) + 1))


@pytest.mark.parametrize("place", [-1, 3])
def test_insertion_outside_the_text_is_an_error(place):
    """The place must lie in the text; the message says where it was and how long the text is."""
    with pytest.raises(InputError, match=f"insertion at {place}: the text has 2 code points"):
        characters.insertion_allowed("好的", place)


def test_ranges_are_sorted_and_apart():
    """The arrays for kernels are int32, sorted, and do not overlap."""
    for firsts, lasts in (characters.extend_ranges(), characters.joiner_ranges()):
        assert firsts.dtype == lasts.dtype == "int32"
        assert (firsts <= lasts).all()
        assert (firsts[1:] > lasts[:-1]).all()


def test_levels_are_those_of_the_standard():
    """The list has 3,500, 3,000 and 1,605 characters in its three levels."""
    levels = Counter(map(characters.level, characters.standard_characters()))
    assert levels == {1: 3500, 2: 3000, 3: 1605}
    assert [characters.level(sign) for sign in "好A国國"] == [1, 0, 1, 0]


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


def test_widths_invert_and_agree_with_compatibility_normalisation():
    """Full width and half width map to each other as NFKC does, the space included."""
    for full, half in characters.TO_HALF_WIDTH.items():
        assert unicodedata.normalize("NFKC", chr(full)) == chr(half)
        assert characters.TO_FULL_WIDTH[half] == full
    assert "ＡＢ　１".translate(characters.TO_HALF_WIDTH) == "AB 1"
