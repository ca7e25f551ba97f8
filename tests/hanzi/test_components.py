"""Parts of characters, splits, and characters that differ by one part."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.hanzi import components as parts
from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.components import ARITY, UNENCODED, parse, stroke_count

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "hanzi"))
from ids import canonical

STANDARD = set(standard_characters())
CHARACTERS = st.sampled_from(standard_characters())


def test_every_sequence_parses_into_known_components():
    """A sequence is well formed, and each of its parts has a row of its own."""

    def check(node):
        assert len(node.parts) == ARITY.get(node.operator, 0)
        assert node.character in ("", UNENCODED) or parse(parts.ids(node.character))
        for part in node.parts:
            check(part)

    for sign in STANDARD:
        check(parse(parts.ids(sign)))


@pytest.mark.parametrize("text", ["⿰讠", "⿱", "⿰讠青青", ""])
def test_broken_sequences_are_named(text):
    """A sequence that is cut short or too long is an error that quotes it."""
    with pytest.raises(ValueError, match="IDS"):
        parse(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [("⿰木⿰又寸", "⿲木又寸"), ("⿱⿱立日十", "⿳立日十"), ("⿰⿰木又寸", "⿲木又寸")],
)
def test_canonical_form_is_one_per_picture(left, right):
    """Nesting in one direction makes no difference; direction and order do."""
    assert canonical(parse(left)) == canonical(parse(right))
    assert canonical(parse("⿰日月")) != canonical(parse("⿰月日")) != canonical(parse("⿱日月"))


def test_splits_are_writable():
    """Parts are standard characters, two or three, never the character itself; weights fall."""
    assert sum(bool(parts.splits(sign)) for sign in STANDARD) > 6000
    for sign in STANDARD:
        found = parts.splits(sign)
        assert [s.weight for s in found] == sorted((s.weight for s in found), reverse=True)
        for split in found:
            assert 2 <= len(split.parts) <= 3
            assert set(split.parts) <= STANDARD - {sign}
            assert split.kind in ("lr", "tb", "other")
            assert 0 < split.weight <= 1


def test_deletions_and_additions_are_inverse():
    """One drops what the other adds, over all pairs; what is left has fewer strokes."""
    dropped = {(sign, other) for sign in STANDARD for other in parts.deletions(sign)}
    added = {(larger, sign) for sign in STANDARD for larger in parts.additions(sign)}
    assert dropped == added
    assert len(dropped) > 10_000
    for sign, other in dropped:
        assert {sign, other} <= STANDARD
        assert stroke_count(other) < stroke_count(sign)


@given(CHARACTERS)
@settings(deadline=None)
def test_exchanges_are_symmetric_and_keep_a_part(sign):
    """Whoever is exchanged for another may be exchanged back; both share operator and a part."""
    for other in parts.exchanges(sign):
        assert other in STANDARD - {sign}
        assert sign in parts.exchanges(other)
        left, right = parse(parts.ids(sign)), parse(parts.ids(other))
        assert left.operator == right.operator
        assert any(a == b for a, b in zip(left.parts, right.parts, strict=True))


@pytest.mark.parametrize(
    ("sign", "some"), [("请", "清情晴睛"), ("们", "扪钔"), ("辩", "辨辫瓣"), ("场", "扬杨汤肠")]
)
def test_exchanges_everybody_knows(sign, some):
    """Families that share their body are found; those that share a radical are not."""
    assert set(some) <= set(parts.exchanges(sign))
    assert not set("话说认他你海") & set(parts.exchanges(sign))


def test_strangers_have_no_parts():
    """Outside the tables a character stands for itself, without an error."""
    assert parts.splits("A") == parts.deletions("A") == ()
    assert parts.exchanges("A") == parts.additions("A") == ()
    assert parts.ids("A") == "A"
