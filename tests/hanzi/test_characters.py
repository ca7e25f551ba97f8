"""Characters of the standard list: their readings, their shapes, and who resembles whom."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from cecdata.common.durable import sha256_of
from cecdata.hanzi import characters
from cecdata.hanzi import components as parts
from cecdata.hanzi import components as shapes
from cecdata.hanzi import readings as sounds
from cecdata.hanzi.characters import (
    HAN_RANGES,
    TABLES,
    is_han,
    read_rows,
    read_table,
    standard_characters,
)
from cecdata.hanzi.components import ARITY, UNENCODED, count_strokes
from cecdata.hanzi.edits import Corruption, align
from cecdata.hanzi.readings import find_confusion

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "hanzi"))
from corrupting import apply
from ids import canonical, parse_ids


def test_ranges_are_sorted_and_apart():
    """The arrays for kernels are int32, sorted, and do not overlap."""
    for firsts, lasts in (
        characters.list_cluster_ranges("before"),
        characters.list_cluster_ranges("after"),
    ):
        assert firsts.dtype == lasts.dtype == "int32"
        assert (firsts <= lasts).all()
        assert (firsts[1:] > lasts[:-1]).all()


def test_levels_are_those_of_the_standard():
    """The list has 3,500, 3,000 and 1,605 characters in its three levels."""
    signs = characters.standard_characters()
    levels = Counter(characters.read_table("characters")[sign][0] for sign in signs)
    assert levels == {"1": 3500, "2": 3000, "3": 1605}


def test_frequency_is_a_distribution():
    """Every standard character may occur, and together they make up a million."""
    values = [characters.find_frequency(sign) for sign in characters.standard_characters()]
    assert min(values) > 0
    assert sum(values) == pytest.approx(1e6, rel=1e-3)
    assert characters.find_frequency("的") > 1000 > characters.find_frequency("彧")
    assert characters.find_frequency("A") == 0


def test_traditional_forms():
    """Simplified characters know the forms they replaced, and unchanged ones have none."""
    assert set(characters.traditional_forms("发")) == set("發髮")
    assert characters.traditional_forms("国") == "國"
    assert characters.traditional_forms("人") == ""
    assert "峯" in characters.variant_forms("峰")


STANDARD = set(standard_characters())
CHARACTERS = st.sampled_from(standard_characters())
SYLLABLES = sorted({r.syllable for sign in STANDARD for r in sounds.list_readings(sign)})


def test_every_character_has_readings_whose_shares_make_one():
    """Shares are fractions of all occurrences; tones are 1 to 5; syllables are plain letters."""
    for sign in STANDARD:
        found = sounds.list_readings(sign)
        assert sum(reading.share for reading in found) == pytest.approx(1, abs=0.004)
        assert [r.share for r in found] == sorted((r.share for r in found), reverse=True)
        assert all(1 <= r.tone <= 5 and r.syllable.isascii() for r in found)
        assert len({str(reading) for reading in found}) == len(found)
        assert sounds.common_readings(sign)


@given(CHARACTERS, CHARACTERS)
@settings(deadline=None)
def test_sound_relations_are_symmetric(left, right):
    """Same and near sound do not depend on who is compared to whom, and exclude each other."""
    assert sounds.have_same_sound(left, right) == sounds.have_same_sound(right, left)
    assert sounds.link_sounds(left, right) == sounds.link_sounds(right, left)
    assert not (sounds.have_same_sound(left, right) and sounds.link_sounds(left, right))


@given(CHARACTERS)
@settings(max_examples=25, deadline=None)
def test_the_list_agrees_with_the_pairwise_relation(sign):
    """The list holds exactly the standard characters for which the relation holds."""
    same = {other for other in STANDARD if other != sign and sounds.have_same_sound(sign, other)}
    assert set(sounds.list_homophones(sign)) == same


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("妈", "马", "tone"), ("是", "四", "initial:sh/s"), ("知", "资", "initial:zh/z"),
        ("吃", "词", "initial:ch/c"), ("牛", "刘", "initial:n/l"), ("湖", "服", "initial:h/f"),
        ("热", "乐", "initial:r/l"), ("蓝", "狼", "final:an/ang"), ("身", "生", "final:en/eng"),
        ("心", "星", "final:in/ing"), ("先", "香", "final:ian/iang"),
        ("关", "光", "final:uan/uang"), ("您", "民", "keyboard"), ("喝", "很", "edit1"),
        ("人", "狗", None), ("教", "叫", None),
    ],
)  # fmt: skip
def test_named_confusions(left, right, kind):
    """Each confusion bears the name of what is confused."""
    assert sounds.link_sounds(left, right) == kind


@given(st.sampled_from(SYLLABLES), st.sampled_from(SYLLABLES))
def test_confusion_is_symmetric_and_reflexive_as_tone(left, right):
    """Two syllables are confused both ways; a syllable with itself in tone alone."""
    assert find_confusion(left, right) == find_confusion(right, left)
    assert (find_confusion(left, right) == "tone") == (left == right)


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
    assert shapes.measure_similarity(sign, sign) == 1
    for other, similarity in shapes.look_alikes(sign).items():
        assert shapes.measure_similarity(sign, other) == similarity
        assert shapes.measure_similarity(other, sign) == similarity


def test_strokes():
    """Sequences are in the five classes and in writing order."""
    assert [shapes.find_strokes(sign) for sign in "木国讠"] == ["1234", "25112141", ""]
    assert all(set(shapes.find_strokes(sign)) <= set("12345") for sign in STANDARD)
    assert shapes.count_strokes("赢") == 17
    assert shapes.look_alikes("A") == {}
    assert shapes.measure_similarity("A", "好") == 0


def test_every_sequence_parses_into_known_components():
    """A sequence is well formed, and each of its parts has a row of its own."""

    def check(node):
        assert len(node.parts) == ARITY.get(node.operator, 0)
        assert node.character in ("", UNENCODED) or parse_ids(parts.find_ids(node.character))
        for part in node.parts:
            check(part)

    for sign in STANDARD:
        check(parse_ids(parts.find_ids(sign)))


@pytest.mark.parametrize("text", ["⿰讠", "⿱", "⿰讠青青", ""])
def test_broken_sequences_are_named(text):
    """A sequence that is cut short or too long is an error that quotes it."""
    with pytest.raises(ValueError, match="IDS"):
        parse_ids(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [("⿰木⿰又寸", "⿲木又寸"), ("⿱⿱立日十", "⿳立日十"), ("⿰⿰木又寸", "⿲木又寸")],
)
def test_canonical_form_is_one_per_picture(left, right):
    """Nesting in one direction makes no difference; direction and order do."""
    assert canonical(parse_ids(left)) == canonical(parse_ids(right))
    assert (
        canonical(parse_ids("⿰日月"))
        != canonical(parse_ids("⿰月日"))
        != canonical(parse_ids("⿱日月"))
    )


def test_splits_are_writable():
    """Parts are standard characters, two or three, never the character itself; weights fall."""
    assert sum(bool(parts.list_splits(sign)) for sign in STANDARD) > 6000
    for sign in STANDARD:
        found = parts.list_splits(sign)
        assert [s.weight for s in found] == sorted((s.weight for s in found), reverse=True)
        for split in found:
            assert 2 <= len(split.parts) <= 3
            assert set(split.parts) <= STANDARD - {sign}
            assert 0 < split.weight <= 1


def test_deletions_leave_fewer_strokes():
    """What is left of a standard character is another one, with fewer strokes."""
    dropped = {(sign, other) for sign in STANDARD for other in parts.list_deletions(sign)}
    assert len(dropped) > 10_000
    for sign, other in dropped:
        assert {sign, other} <= STANDARD
        assert count_strokes(other) < count_strokes(sign)


@given(CHARACTERS)
@settings(deadline=None)
def test_exchanges_are_symmetric_and_keep_a_part(sign):
    """Whoever is exchanged for another may be exchanged back; both share operator and a part."""
    for other in parts.list_exchanges(sign):
        assert other in STANDARD - {sign}
        assert sign in parts.list_exchanges(other)
        left, right = parse_ids(parts.find_ids(sign)), parse_ids(parts.find_ids(other))
        assert left.operator == right.operator
        assert any(a == b for a, b in zip(left.parts, right.parts, strict=True))


@pytest.mark.parametrize(
    ("sign", "some"), [("请", "清情晴睛"), ("们", "扪钔"), ("辩", "辨辫瓣"), ("场", "扬杨汤肠")]
)
def test_exchanges_everybody_knows(sign, some):
    """Families that share their body are found; those that share a radical are not."""
    assert set(some) <= set(parts.list_exchanges(sign))
    assert not set("话说认他你海") & set(parts.list_exchanges(sign))


def test_strangers_have_no_parts():
    """Outside the tables a character stands for itself, without an error."""
    assert parts.list_splits("A") == parts.list_deletions("A") == ()
    assert parts.list_exchanges("A") == ()
    assert parts.find_ids("A") == "A"


NAMES = sorted(path.stem for path in TABLES.glob("*.tsv"))
PER_CHARACTER = ("characters", "readings", "ids", "drops", "shapes")


@pytest.mark.parametrize("name", NAMES)
def test_checksum(name):
    """A table is the one that SOURCES.md vouches for."""
    lines = (TABLES / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"| {name}.tsv |")]
    assert line.split("|")[-2].strip() == sha256_of(TABLES / f"{name}.tsv").sha256


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
    assert set(standard_characters()) <= set(read_table(name))
    assert len(read_table(name)) == len(read_rows(name))


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
def edited(draw: st.DrawFn) -> tuple[str, list[Corruption]]:
    """A target and a valid list of edits of it."""
    target = draw(TEXT)
    cuts = sorted(draw(st.lists(st.integers(0, len(target)), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [
        Corruption(
            start=a, end=b, target=target[a:b], source=draw(TEXT), operator="noise", kind="insert"
        )
        for a, b in pairs
    ]
    return target, edits


def slow_apply(target: str, edits: list[Corruption]) -> str:
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
    assert align("己径", "已经") == (
        Corruption(start=0, end=1, target="已", source="己"),
        Corruption(start=1, end=2, target="经", source="径"),
    )
    assert align("言吴", "误") == (Corruption(start=0, end=1, target="误", source="言吴"),)
