"""Tables are those that SOURCES.md vouches for; edits lead from one text to another."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from cecdata.hanzi.characters import HAN_RANGES, TABLES, is_han, rows, standard_characters, table
from cecdata.hanzi.edits import Edit, align, apply

NAMES = sorted(path.stem for path in TABLES.glob("*.tsv"))
PER_CHARACTER = ("characters", "readings", "ids", "drops", "shapes")


@pytest.mark.parametrize("name", NAMES)
def test_checksum(name):
    """A table is the one that SOURCES.md vouches for."""
    lines = (TABLES / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"| {name}.tsv |")]
    assert line.split("|")[-2].strip() == hashlib.sha256(_bytes(name)).hexdigest()


def _bytes(name):
    return (TABLES / f"{name}.tsv").read_bytes()


def test_every_table_is_listed_with_its_script_and_inputs():
    """SOURCES.md names each table once, a script that exists, and inputs that it lists."""
    text = (TABLES / "SOURCES.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| (\w+)\.tsv \|", text, re.MULTILINE)) == NAMES
    root = TABLES.parents[2]
    scripts = re.findall(r"\| (tools/hanzi/\w+\.py) \|", text)
    assert len(scripts) == len(NAMES)
    assert all((root / script).is_file() for script in scripts)
    for notice in re.findall(r"\(LICENSES/(\S+)\)", text):
        assert (TABLES / "LICENSES" / notice).stat().st_size > 500


@pytest.mark.parametrize("name", PER_CHARACTER)
def test_coverage(name):
    """Every standard character has a row, and no character has two."""
    assert set(standard_characters()) <= set(table(name))
    assert len(table(name)) == len(rows(name))


def test_han_ranges_are_the_ideographs_of_unicode():
    """What unicodedata calls an ideograph is Han, and no other letter is."""
    for point in range(0x110000):
        name = unicodedata.name(chr(point), "")
        if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")):
            assert is_han(point), hex(point)
        elif unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs") and point != 0x3007:
            assert not is_han(point), hex(point)
    assert all(first <= last for first, last in HAN_RANGES)


# Few letters, so that texts share stretches; with characters beyond the BMP, full width, an
# emoji sequence's joiner and a combining mark.
TEXT = st.text(alphabet="误言吴已己在再 A＃#𠀀𫝀👨\u200d\u0301。", max_size=24)


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A target and a valid list of edits of it."""
    target = draw(TEXT)
    cuts = sorted(draw(st.lists(st.integers(0, len(target)), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [Edit(a, b, target[a:b], draw(TEXT), "noise", "insert") for a, b in pairs]
    return target, edits


def slow_apply(target: str, edits: list[Edit]) -> str:
    """The oracle: from the last edit to the first, so that no offset moves."""
    for edit in reversed(edits):
        target = target[: edit.start] + edit.source + target[edit.end :]
    return target


@given(edited())
def test_apply_agrees_with_replacing_from_the_end(case):
    """Carrying edits out from left to right gives what replacing from the right gives."""
    target, edits = case
    assert apply(target, edits) == slow_apply(target, edits)


@given(TEXT, TEXT)
def test_align_applies_to_the_source(source, target):
    """Aligning and applying gives the source, for any two texts."""
    assert apply(target, align(source, target)) == source


@given(TEXT, TEXT)
def test_align_is_minimal(source, target):
    """The alignment costs what Levenshtein says: each edit its longer side."""
    cost = sum(max(len(e.target), len(e.source)) for e in align(source, target))
    distance = Levenshtein.distance(source, target)
    # A joined run may hold an insertion and a deletion, which its longer side counts once.
    assert cost <= distance
    own = sum(Levenshtein.distance(e.target, e.source) for e in align(source, target))
    assert own == distance


@given(TEXT)
def test_align_of_equal_texts_is_empty(text):
    """Equal texts have no edits."""
    assert align(text, text) == ()


def test_align_separates_substitutions_but_not_a_split():
    """Neighbouring substitutions are one edit each; a split with its insertion is one."""
    assert align("己径", "已经") == (Edit(0, 1, "已", "己"), Edit(1, 2, "经", "径"))
    assert align("言吴", "误") == (Edit(0, 1, "误", "言吴"),)
