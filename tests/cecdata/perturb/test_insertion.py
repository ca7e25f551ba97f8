"""The oracle's rule for insertions, which the kernel follows, against Unicode's clusters."""

from __future__ import annotations

import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from perturb_oracle import insertion_allowed

from cecdata.hanzi.characters import cluster_ranges

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
def test_insertion_is_forbidden_at_boundaries_only_for_stated_reasons(text):
    """A boundary is closed only before a lone mark, after a lone joiner, or between flags."""
    for match in regex.finditer(r"\X", text):
        position = match.end()
        if not insertion_allowed(text, position):
            after_joiner = _in(text[position - 1], cluster_ranges("after"))
            before_mark = position < len(text) and _in(text[position], cluster_ranges("before"))
            flags = regex.fullmatch(r"\p{RI}{2}", text[position - 1 : position + 1])
            assert after_joiner or before_mark or flags


def _in(sign, ranges):
    return any(first <= ord(sign) <= last for first, last in zip(*ranges, strict=True))
