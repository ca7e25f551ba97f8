"""The published scorers' own numbers, digit by digit.

The golden values are in parity/golden of the folder CEC_SHARED. The published scripts printed them
at the commits that versions.json there names; this repository has none of them.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import test_parity as parity
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_oracles import m2_block, made_rows, slow_annotate

from cecbench.cherrant import kernels
from cecbench.cherrant.costs import (
    NO_DICTIONARIES,
    Dictionaries,
    read_attributes,
    remove_whitespace,
    simplify,
)
from cecbench.cherrant.edits import NOOP, SpanEdit, annotate, is_move, is_swap
from cecbench.metrics.base import flatten_keys
from cecbench.metrics.cherrant import LEVELS, annotate_rows, compare_edits, compare_types
from cecbench.metrics.cscd import project_cherrant, project_difflib
from cecbench.metrics.rows import Row
from cecbench.scorers import read_rows, score
from cecdata.common.errors import InputError

SHARED = os.environ.get("CEC_SHARED")
PARITY = Path(SHARED or "/nonexistent") / "parity"
pytestmark = pytest.mark.skipif(
    not PARITY.is_dir(), reason="CEC_SHARED is not set to a folder with parity/"
)

PROJECTIONS = {
    "cherrant_char": "cherrant",
    "cherrant_char_if_len_differs": "cherrant_if_len_differs",
    "difflib": "difflib",
    "difflib_if_len_differs": "difflib_if_len_differs",
}
#: of 13,200 blocks, those that only Cilin decides, and the number of their (set, system) pairs
CILIN_BLOCKS = 7
CILIN_PAIRS = 4


def sets() -> list[str]:
    return sorted(path.name for path in (PARITY / "pred").glob("*"))


def systems(name: str) -> list[str]:
    return sorted(path.stem for path in (PARITY / "pred" / name).glob("*.tsv"))


def pairs() -> list[tuple[str, str]]:
    return [(name, system) for name in sets() for system in systems(name)]


@functools.cache
def golden(name: str) -> dict:
    return json.loads((PARITY / "golden" / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def rows(name: str, system: str) -> tuple[Row, ...]:
    return tuple(read_rows(PARITY / "pred" / name / f"{system}.tsv"))


@functools.cache
def probes() -> dict[str, Row]:
    lines = (PARITY / "edge" / "edge.tsv").read_text(encoding="utf-8").split("\n")
    fields = [line.split("\t") for line in lines if line]
    return {number: Row(number, *texts) for number, _, *texts in fields}


def differing(expected: Mapping, values: Mapping) -> dict[str, tuple[object, object]]:
    """Return the golden values that ours lack or that differ in value or type, with ours."""
    wrong = {}
    for key, value in flatten_keys(expected).items():
        ours = values.get(key, "missing")
        if ours != value or type(ours) is not type(value):
            wrong[key] = (value, ours)
    return wrong


def check(
    expected: Mapping, given: tuple[Row, ...], scorer: str, options: Mapping[str, object]
) -> None:
    values = score(given, scorer, options).values
    if "error" in expected:
        # The published script prints nothing here; ours names the error and its cause, and goes on.
        assert values["error"] == expected["error"]
        assert values["error_because"]
        assert values["rows"] == expected.get("rows", 0)
        return
    assert differing(expected, values) == {}


@pytest.mark.parametrize("scorer", ["cscd", "lemon", "sighan", "pycorrector"])
@pytest.mark.parametrize("pair", pairs(), ids="-".join)
def test_numbers_of_a_policy(scorer: str, pair: tuple[str, str]) -> None:
    """Under each policy, every count and number equals that of the published script."""
    name, system = pair
    for policy, expected in golden(scorer)[name][system].items():
        if not policy.startswith("pipeline"):  # LEMON's tokeniser belongs to the systems
            check(expected, rows(name, system), scorer, {"unequal_length": policy})


@pytest.mark.parametrize("scorer", ["cscd", "lemon", "sighan", "pycorrector"])
def test_probes(scorer: str) -> None:
    """Each probe of a single rule gives the published numbers."""
    for number, row in probes().items():
        expected = golden("edge")[number][scorer]
        if expected is None:
            continue
        by_policy = {"strict": expected} if scorer in {"cscd", "pycorrector"} else expected
        for policy, values in by_policy.items():
            if not policy.startswith("pipeline"):
                check(values, (row,), scorer, {"unequal_length": policy})


@pytest.mark.parametrize("pair", pairs(), ids="-".join)
def test_difflib_projections(pair: tuple[str, str]) -> None:
    """C-LLM's numbers with difflib are the published ones."""
    name, system = pair
    expected = golden("cllm")[name][system]
    if "error" in expected:
        check(expected, rows(name, system), "cllm", {"projection": "difflib"})
    for key, projection in PROJECTIONS.items():
        if key in expected and projection.startswith("difflib"):
            check(expected[key], rows(name, system), "cllm", {"projection": projection})


@pytest.mark.slow
def test_projected_probes() -> None:
    """Each probe's four projections give the published numbers."""
    for number, row in probes().items():
        expected = golden("edge")[number]["cllm"]
        for key, projection in PROJECTIONS.items():
            if expected is not None:
                check(expected[key], (row,), "cllm", {"projection": projection})


def test_cherrant_projections() -> None:
    """C-LLM's numbers with ChERRANT are the published ones unless Cilin decides a tie."""
    wrong = set()
    for name, system in pairs():
        for key, expected in golden("cllm")[name][system].items():
            if PROJECTIONS.get(key, "").startswith("cherrant"):
                options = {"projection": PROJECTIONS[key]}
                values = score(rows(name, system), "cllm", options).values
                if differing(expected, values):
                    wrong.add((name, system))
    assert len(wrong) <= CILIN_PAIRS


def test_cherrant_probes() -> None:
    """Each probe has the published edits and counts in every mode."""
    for number, row in probes().items():
        for mode, expected in golden("edge")[number]["cherrant"].items():
            ((reference, hypothesis),) = annotate_rows([row], mode, NO_DICTIONARIES)
            lines = [
                [line for line in m2_block("", side).split("\n") if line.startswith("A ")]
                for side in (reference, hypothesis)
            ]
            assert lines == [expected["ref_edits"], expected["hyp_edits"]], (number, mode)
            values = score([row], "cherrant", options={"mode": mode}).values
            assert values["tp_fp_fn"] == expected["tp_fp_fn"], (number, mode)


@pytest.mark.parametrize("mode", ["default", "first", "nosimp"])
def test_cherrant_counts(mode: str) -> None:
    """Counts and printed P, R, F at every level are ChERRANT's unless Cilin decides a tie."""
    wrong = set()
    for name, by_system in golden("cherrant")[mode].items():
        for system, expected in by_system.items():
            values = score(rows(name, system), "cherrant", options={"mode": mode}).values
            if differing(expected, values):
                wrong.add((name, system))
    assert len(wrong) <= CILIN_PAIRS


def blocks(name: str, system: str) -> Iterator[str]:
    with gzip.open(PARITY / "m2" / name / f"{system}.default.m2.gz", "rt", encoding="utf-8") as f:
        yield from f.read().removesuffix("\n\n").split("\n\n")


def differing_blocks(dictionaries: Dictionaries) -> tuple[int, int]:
    """Return the number of published blocks, and of those that differ from ours."""
    wrong = total = 0
    for name in sets():
        for system in ["ref", *systems(name)]:
            given = rows(name, "copy" if system == "ref" else system)
            made = annotate_rows(given, "default", dictionaries)
            for published, row, (reference, hypothesis) in zip(
                blocks(name, system), given, made, strict=True
            ):
                side = reference if system == "ref" else hypothesis
                total += 1
                wrong += m2_block(remove_whitespace(row.source), side) != published
    return total, wrong


def test_m2_blocks() -> None:
    """M2 files are ChERRANT's line by line, except blocks that only Cilin decides."""
    total, wrong = differing_blocks(NO_DICTIONARIES)
    assert total >= 13_200
    assert wrong <= CILIN_BLOCKS


CILIN = os.environ.get("CEC_CILIN")
NONE = Dictionaries()


def test_whitespace_is_gone_before_a_text_is_simplified() -> None:
    """OpenCC takes 乾坤 for a word, which keeps its 乾, also if the answer has a space in it."""
    row = Row("1", "乾坤大", "乾坤大", "乾 坤大")
    ((reference, hypothesis),) = annotate_rows([row], "default", NONE)
    assert reference.unchanged
    assert hypothesis.unchanged
    assert project_cherrant([row], NONE) == ["乾坤大"]


def test_an_answer_that_cannot_be_annotated_has_its_own_tier() -> None:
    """无法标注 is a false positive of the tier N, the first letter of its type."""
    values = score([Row("1", "己经", "已经", "无法标注")], "cherrant").values
    assert (values["op_tier.N.tp"], values["op_tier.N.fp"]) == (0, 1)
    assert values["op_tier.S.fn"] == 1


def test_a_projection_cuts_off_the_lead_in() -> None:
    """The text up to 纠错后的句子： is cut off, because it would lengthen an edit."""
    answer = "纠错后的句子：已经来了"
    assert project_cherrant([Row("1", "己经来了", "已经来了", answer)], NONE) == ["已经来了"]
    assert project_cherrant([Row("1", "己经来了", "已经来了", "纠错后：已经来了")], NONE) != [
        "已经来了"
    ]


def test_a_projection_looks_at_the_first_alignment_alone() -> None:
    """If two alignments cost the same, only edits of the first are applied."""
    row = Row("1", "那是在……", "那是在……", "那那迥在…")
    ((_, hypothesis),) = annotate_rows([row], "default", NONE)
    first, second = hypothesis.readings
    assert [edit for edit in second if edit not in first]
    assert project_cherrant([row], NONE) == ["那迥在……"]


def test_difflib_takes_fewer_characters_for_chinese() -> None:
    """The last characters of the first block, from 龦 on, are not replaced; 龥 is."""
    assert project_difflib("甲龥乙", "甲丙乙") == "甲丙乙"
    assert project_difflib("甲龦乙", "甲丙乙") == "甲龦乙"


def test_a_batch_of_pycorrector_reads_lines() -> None:
    """Lines are stripped; comments and lines without a target are skipped."""
    rows = [
        ("1", " 好", "好", "好"),
        ("2", "好", "坏 ", "坏"),
        ("3", "#好", "坏", "坏"),
        ("4", "好", " ", "好"),
    ]
    values = score(rows, "pycorrector").values
    assert (values["eval_model_batch.acc"], values["eval_model_batch.f1"]) == (1.0, 1.0)
    assert values["compute_sentence_level_prf.acc"] == 0.5


def lines(rows: list[Row], side: int) -> list[str]:
    made = []
    for number, row in enumerate(rows):
        triples = zip(range(1, 9), row[1], row[side], strict=False)
        pairs = ", ".join(f"{at}, {b}" for at, a, b in triples if a != b)
        made.append(f"{number:05}, {pairs or '0'}")
    return made


def realise(rows: list[Row]) -> dict[str, float]:
    """Return ReaLiSe's sentence level, computed from the lines."""
    sides = []
    for side in (3, 2):
        read = []
        for line in lines(rows, side):
            cells = line.strip().split(", ")[1:]
            cells = [] if cells == ["0"] else cells
            read.append([(int(cells[k]), cells[k + 1]) for k in range(0, len(cells), 2)])
        sides.append(read)
    pairs = list(zip(*sides, strict=True))
    changed, wrong = sum(bool(p) for p, _ in pairs), sum(bool(t) for _, t in pairs)
    hits = sum(bool(p) and p == t for p, t in pairs)
    return {"p": hits / changed * 100, "r": hits / wrong * 100}


def paddle(rows: list[Row]) -> str:
    """Return Paddle's precision of correction as a fraction, or its error, from the lines."""
    alarms = hits = 0
    for said, meant in zip(lines(rows, 3), lines(rows, 2), strict=True):
        sides = []
        for line in (said, meant):
            tokens = line.strip().split(" ")[1:]
            try:
                places = [int(token.strip(",")) for token in tokens[::2]]
            except ValueError as error:
                return f"ValueError: {error}"
            sides.append((places, [token.strip(",") for token in tokens[1::2]]))
        if sides[0][0] != [0]:
            alarms += sides[1][0] == [0]
            mine, theirs = (sorted(zip(*side, strict=False)) for side in sides)
            hits += mine == theirs
    return f"{hits}/{hits + alarms}"


@st.composite
def rows_with_whitespace(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(1, 5))):
        length = draw(st.integers(1, 4))
        one = st.text("己已 \u3000", min_size=length, max_size=length)
        source = draw(st.text("己已门", min_size=length, max_size=length))
        rows.append(Row(str(number), source, draw(one | st.just(source)), draw(one)))
    return rows


@given(rows_with_whitespace())
def test_edits_that_write_whitespace_are_read_back_as_published(rows: list[Row]) -> None:
    """If a script of the family stops at such lines, or loses a character, so does ours."""
    values = score(rows, "sighan", {"unequal_length": "strict"}).values
    try:
        expected: object = realise(rows)
    except ZeroDivisionError as error:
        expected = f"ZeroDivisionError: {error}"
    except ValueError as error:
        expected = f"ValueError: {error}"
    if isinstance(expected, dict):
        got = {part: values[f"realise.sent-correct-{part}"] for part in "pr"}
        assert got == expected
    elif values["realise.error"] != expected:  # of several such rows, the first is not known
        assert "a place and a comma" in str(values["realise.error"])
        assert "invalid literal" in str(expected)
    key = "paddle_sighan_evaluate."
    fraction = values.get(f"{key}correction.Precision.fraction", values.get(f"{key}error"))
    assert fraction == paddle(rows)


@pytest.mark.slow
@pytest.mark.skipif(
    CILIN is None or not parity.PARITY.is_dir(),
    reason="CEC_CILIN names no Cilin file, or CEC_SHARED no folder with parity/",
)
def test_with_cilin_everything_is_exact() -> None:
    """With Cilin, all 13,200 blocks, counts and projections of these sets are ChERRANT's."""
    cilin = Dictionaries(cilin=Path(str(CILIN)))
    assert parity.differing_blocks(cilin) == (13_200, 0)
    for mode, by_set in parity.golden("cherrant").items():
        for name, by_system in by_set.items():
            for system, expected in by_system.items():
                options = {"mode": mode, "cilin": cilin}
                values = score(parity.rows(name, system), "cherrant", options=options).values
                assert parity.differing(expected, values) == {}, (mode, name, system)
    for name, system in parity.pairs():
        for key, expected in parity.golden("cllm")[name][system].items():
            if parity.PROJECTIONS.get(key, "").startswith("cherrant"):
                options = {"projection": parity.PROJECTIONS[key], "cilin": cilin}
                values = score(parity.rows(name, system), "cllm", options=options).values
                assert parity.differing(flatten_keys(expected), values) == {}, (name, system, key)


text = st.text(alphabet="的地已己小老我𠀀，,。A👧", min_size=1, max_size=7)


@given(text, text)
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
    """Texts with nothing in common have very many cheapest alignments, and few readings.

    Those whose grid would exceed the memory are refused.
    """
    with pytest.raises(InputError, match="cannot align texts of 12,000 and 12,000 characters"):
        annotate("好" * 12_000, "坏" * 12_000)
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
        ("公园", "公圆", True), ("公园里", "公圆理", False), ("甲乙丙", "丙甲乙", True),
        ("甲乙丙", "丙乙甲", False), ("。", "。", True), ("！", "！", False),
        ("（）", "（）", False),
    ],
)  # fmt: skip
def test_what_counts_as_moved(deleted: str, inserted: str, *, same: bool) -> None:
    """A moved text may differ by one character or be rotated; known marks never move."""
    assert is_move(deleted, inserted) is same


def test_what_counts_as_exchanged() -> None:
    """Strings of two or more characters may each differ by one; shorter ones must be equal."""
    assert is_swap(("甲乙丙丁", "甲乙丙戊"), ("老李", "老王"))
    assert not is_swap(("甲乙丙丁", "甲乙庚辛"), ("老李", "老李"))
    assert not is_swap(("小", "小"), ("老李", "老王"))


def test_a_reference_that_cannot_be_annotated_counts_nothing() -> None:
    """A sentence whose target is 无法标注 is skipped, as published."""
    values = score([("1", "他来", "无法标注", "他走")], "cherrant").values
    assert values["tp_fp_fn"] == [0, 0, 0]


def test_tokens() -> None:
    """All kinds of whitespace are removed; texts with line breaks are simplified too."""
    assert remove_whitespace(" 他\u3000来\u00a0了\t") == "他来了"
    assert simplify(["頭髮", "他\n頭", "", "後"]) == ["头发", "他\n头", "", "后"]


def test_counts_follow_multiplicity() -> None:
    """Hits and misses follow the reference's multiplicity, false positives the hypothesis'."""
    a, b = SpanEdit(0, 1, "S", "甲"), SpanEdit(2, 2, "M", "乙")
    assert compare_edits((a, b, b), (a, a), "cs") == (2, 2, 0)
    assert compare_edits((NOOP,), (a, a), "cs") == (0, 0, 2)
    assert compare_types((a, b, b), (a, a)) == {
        "M": (0, 2, 0), "N": (0, 0, 0), "R": (0, 0, 0), "S": (2, 0, 0), "W": (0, 0, 0),
    }  # fmt: skip


@given(text, text, text)
@settings(deadline=None)
def test_an_edit_list_against_itself_is_all_hits(source: str, target: str, other: str) -> None:
    """A list has only hits against itself; hits and misses add up to the reference."""
    mine, right = annotate(source, target).edits, annotate(source, other).edits
    for level in LEVELS:
        assert compare_edits(mine, mine, level)[1:] == (0, 0)
        tp, _, fn = compare_edits(mine, right, level)
        assert tp + fn == compare_edits(right, right, level)[0]


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
    return kernels._find_substitution_cost(ord(a), ord(b), read_attributes(dictionaries))


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


def test_confusable_characters_are_those_of_the_list(tmp_path: Path) -> None:
    """The last line of a character holds, in both directions."""
    path = tmp_path / "confusion.txt"
    path.write_text("人:入八\n入:夫\n大 天大\n天:\n人:夫大\n", encoding="utf-8")
    listed = [("人", "夫"), ("人", "大"), ("入", "夫"), ("大", "天"), ("大", "大")]
    keys = {
        (ord(a) << 32) + ord(b) for one, other in listed for a, b in ((one, other), (other, one))
    }
    assert read_attributes(Dictionaries(confusion=path)).confusable.tolist() == sorted(keys)


def test_files_that_are_no_dictionaries_are_refused(tmp_path: Path) -> None:
    """A missing file, and one without lines of Cilin, are named."""
    path = tmp_path / "x.txt"
    path.write_text("甲 乙\n", encoding="utf-8")
    with pytest.raises(InputError, match="no line such as"):
        annotate("甲", "乙", Dictionaries(cilin=path))
    with pytest.raises(InputError, match="cannot be read as a dictionary of ChERRANT"):
        annotate("甲", "乙", Dictionaries(cilin=tmp_path / "none.txt"))
