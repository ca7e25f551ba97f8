"""ChERRANT's edits: the kernel against a slow oracle, its rules one by one, dictionaries."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_oracles import made_rows, slow_annotate

from cecbench.cherrant import kernels
from cecbench.cherrant.costs import (
    NO_DICTIONARIES,
    CharacterTable,
    Dictionaries,
    character_table,
    characters,
    simplify,
)
from cecbench.cherrant.edits import NOOP, SpanEdit, annotate, moved, swapped
from cecbench.metrics.cherrant import LEVELS, compare, compare_types
from cecbench.scorers import score
from cecdata.common.errors import InputError

text = st.text(alphabet="的地已己小老我𠀀，,。A👧", min_size=1, max_size=7)


@given(text, text)
@settings(max_examples=400, deadline=None)  # the first example compiles
def test_the_kernel_equals_the_slow_oracle(source: str, target: str) -> None:
    """All cheapest alignments, merged and typed, are those of plain Python, in its order."""
    if source != target:
        assert annotate(source, target).readings == slow_annotate(source, target)


def test_long_and_uneven_sentences_equal_the_slow_oracle() -> None:
    """Beyond a difference of ten characters there is one alignment, that of the oracle."""
    for row in made_rows(25, equal=False):
        for target in (row.target, row.prediction, row.prediction[:-12], row.target * 2):
            if target != row.source:
                readings = annotate(row.source, target).readings
                assert readings == slow_annotate(row.source, target)


def test_unlike_texts_are_one_edit_at_once() -> None:
    """Texts with nothing in common have very many cheapest alignments, and few readings."""
    source = "".join(chr(0x4E00 + number) for number in range(40))
    for shift in (0, 3, 9):
        target = "".join(chr(0x6000 + number) for number in range(40 + shift))
        annotation = annotate(source, target)
        assert not annotation.capped
        assert annotation.edits[0].kind == "S"
        assert len(annotation.readings) <= 2


@given(text, text)
@settings(deadline=None)
def test_edits_turn_the_source_into_the_target(source: str, target: str) -> None:
    """A reading's edits, applied from the back, give the target."""
    for reading in annotate(source, target).readings:
        written = source
        for edit in reversed([edit for edit in reading if edit.kind != "noop"]):
            written = written[: edit.start] + edit.text + written[edit.end :]
        assert written == target


@pytest.mark.parametrize(
    ("source", "target", "edits"),
    [
        ("他来", "", []),
        ("他来", "他来", [NOOP]),
        ("他来", "没有错误", [NOOP]),
        ("他来", "无法标注", [(-1, -1, "NA", "")]),
        ("我门己经", "我们已经", [(1, 3, "S", "们已")]),
        ("我们去公园散步", "我们公园去散步", [(2, 5, "W", "公园去")]),
        ("甲，乙丙", "甲乙，丙", [(1, 3, "W", "乙，")]),
        ("甲，乙丙丁戊", "甲乙丙丁，戊", [(1, 2, "R", ""), (5, 5, "M", "，")]),
        ("散步了去公园", "去公园散步", [(0, 6, "W", "去公园散步")]),
        ("这是女子人", "这是好人", [(2, 4, "S", "好")]),
        ("小王对老李道歉", "老李对小王道歉", [(0, 5, "W", "老李对小王")]),  # rotated: 小王对
        ("泄漏从工厂里出", "从工厂里泄露出", [(0, 6, "W", "从工厂里泄露")]),
    ],
)
def test_rules_one_by_one(source: str, target: str, edits: list[tuple]) -> None:
    """One pair for each rule: nothing to do, runs, moves, moved punctuation."""
    assert list(annotate(source, target).edits) == edits


@pytest.mark.parametrize(
    ("deleted", "inserted", "same"),
    [
        ("公园", "公圆", True),
        ("公园里", "公圆理", False),
        ("甲乙丙", "丙甲乙", True),
        ("甲乙丙", "丙乙甲", False),
        ("。", "。", True),
        ("！", "！", False),
        ("（）", "（）", False),
    ],
)
def test_what_counts_as_moved(deleted: str, inserted: str, *, same: bool) -> None:
    """A moved text may differ by one character or be rotated; known marks never move."""
    assert moved(deleted, inserted) is same


def test_what_counts_as_exchanged() -> None:
    """Strings of two or more characters may each differ by one; shorter ones must be equal."""
    assert swapped(("甲乙丙丁", "甲乙丙戊"), ("老李", "老王"))
    assert not swapped(("甲乙丙丁", "甲乙庚辛"), ("老李", "老李"))
    assert not swapped(("小", "小"), ("老李", "老王"))


def test_a_reference_that_cannot_be_annotated_counts_nothing() -> None:
    """A sentence whose target is 无法标注 is skipped, as published."""
    values = score([("1", "他来", "无法标注", "他走")], "cherrant").values
    assert values["tp_fp_fn"] == [0, 0, 0]


def test_tokens() -> None:
    """All kinds of whitespace are removed; texts with line breaks are simplified too."""
    assert characters(" 他\u3000来\u00a0了\t") == "他来了"
    assert simplify(["頭髮", "他\n頭", "", "後"]) == ["头发", "他\n头", "", "后"]


def test_counts_follow_multiplicity() -> None:
    """Hits and misses follow the reference's multiplicity, false positives the hypothesis'."""
    a, b = SpanEdit(0, 1, "S", "甲"), SpanEdit(2, 2, "M", "乙")
    assert compare((a, b, b), (a, a), "cs") == (2, 2, 0)
    assert compare((NOOP,), (a, a), "cs") == (0, 0, 2)
    assert compare_types((a, b, b), (a, a)) == {
        "M": (0, 2, 0),
        "N": (0, 0, 0),
        "R": (0, 0, 0),
        "S": (2, 0, 0),
        "W": (0, 0, 0),
    }


@given(text, text, text)
@settings(deadline=None)
def test_an_edit_list_against_itself_is_all_hits(source: str, target: str, other: str) -> None:
    """A list has only hits against itself; hits and misses add up to the reference."""
    mine, right = annotate(source, target).edits, annotate(source, other).edits
    for level in LEVELS:
        assert compare(mine, mine, level)[1:] == (0, 0)
        tp, _, fn = compare(mine, right, level)
        assert tp + fn == compare(right, right, level)[0]


def test_without_cheapest_ties_there_is_one_reading() -> None:
    """`first` gives the first of the readings that the default gives."""
    source, target = "他的病情己经好转。", "他的病情已经好转。他的病情已经好转。"
    every = annotate(source, target)
    assert len(every.readings) == 2
    assert annotate(source, target, first_only=True).readings == every.readings[:1]


def test_cilin_decides_ties(tmp_path: Path) -> None:
    """With Cilin, characters of one class cost less, so substitutions are cheaper than a swap."""
    cilin = tmp_path / "cilin.txt"
    cilin.write_text("Aa01A01= 己 几 己几\nBb02B02# 丙\n", encoding="utf-8")
    known = Dictionaries(cilin=cilin)
    assert annotate("一己几二", "一几己二").edits == ((1, 3, "W", "几己"),)
    assert annotate("一己几二", "一几己二", known).edits == ((1, 3, "S", "几己"),)
    assert known.name.startswith("pinyin+cilin@")


def cost(a: str, b: str, dictionaries: Dictionaries) -> float:
    table = character_table(dictionaries)
    first, second = table.numbers(a + b).tolist()
    return kernels._substitution(first, second, table.attributes())


def test_cilin_is_read_as_published(tmp_path: Path) -> None:
    """The file is GBK or UTF-8; a character's last class counts; levels are compared separately."""
    lines = "Aa01A01= 人 士\nBa01B02# 丙 人\nCc03C01@ 士\n"
    for encoding in ("gbk", "utf-8"):
        path = tmp_path / f"{encoding}.txt"
        path.write_text(lines, encoding=encoding)
        known = Dictionaries(cilin=path)
        assert cost("人", "丙", known) == 0.75  # both Ba01 last: sem 0
        assert cost("人", "士", known) == 1 + 0.5 + 0.25
        assert cost("人", "鱼", known) == 4 / 6 + 0.5 + 0.25
    assert cost("人", "丙", NO_DICTIONARIES) == 1.75
    apart = tmp_path / "apart.txt"
    apart.write_text("Aa01A01= 人\nBa01A01= 丙\n", encoding="utf-8")
    assert cost("人", "丙", Dictionaries(cilin=apart)) == 2 / 6 + 0.5 + 0.25


def test_a_confusion_list_spares_the_form(tmp_path: Path) -> None:
    """Characters listed together cost 0.5 less, in either direction."""
    path = tmp_path / "confusion.txt"
    path.write_text("人:入八\n", encoding="utf-8")
    assert cost("入", "人", NO_DICTIONARIES) == 1.75
    assert cost("入", "人", Dictionaries(confusion=path)) == 1.25


@given(st.lists(st.text("人入八大天夫A。", min_size=1, max_size=4), max_size=6))
def test_confusable_characters_are_those_of_the_list(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    """In whatever order texts come, the keys are the listed pairs of the characters met."""
    path = tmp_path_factory.getbasetemp() / "confusion.txt"
    path.write_text("人:入八\n入:夫\n大 天大\n天:\n人:夫大\n", encoding="utf-8")
    listed = [("人", "夫"), ("人", "大"), ("入", "夫"), ("大", "天"), ("大", "大")]
    table = CharacterTable(Dictionaries(confusion=path))
    number = {c: int(table.numbers(text)[at]) for text in texts for at, c in enumerate(text)}
    keys = {
        (number[a] << 32) + number[b]
        for one, other in listed
        for a, b in ((one, other), (other, one))
        if a in number and b in number
    }
    assert table.attributes().confusable.tolist() == sorted(keys)


def test_files_that_are_no_dictionaries_are_refused(tmp_path: Path) -> None:
    """A missing file, and one without lines of Cilin, are named."""
    path = tmp_path / "x.txt"
    path.write_text("甲 乙\n", encoding="utf-8")
    with pytest.raises(InputError, match="no line such as"):
        annotate("甲", "乙", Dictionaries(cilin=path))
    with pytest.raises(InputError, match="cannot be read as one of ChERRANT"):
        annotate("甲", "乙", Dictionaries(cilin=tmp_path / "none.txt"))
