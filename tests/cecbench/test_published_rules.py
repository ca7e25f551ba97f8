"""Rules of the published scripts that ordinary sentences rarely meet: whitespace in files, the
choice of alignments, which characters are Chinese. The oracles write and read the files' lines.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import test_parity as parity
from hypothesis import given, settings
from hypothesis import strategies as st

from cecbench.cherrant.costs import Dictionaries
from cecbench.metrics.base import flatten
from cecbench.metrics.cherrant import annotate_rows
from cecbench.metrics.cscd import project_cherrant, project_difflib
from cecbench.metrics.rows import Row
from cecbench.scorers import Options, score

CILIN = os.environ.get("CEC_CILIN")
NONE = Dictionaries()


def test_whitespace_is_gone_before_a_text_is_simplified() -> None:
    """OpenCC takes 乾坤 for a word, which keeps its 乾, also if the answer has a space in it."""
    row = Row("1", "乾坤大", "乾坤大", "乾 坤大")
    ((_, reference, hypothesis),) = annotate_rows([row], "default", NONE)
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
    ((_, _, hypothesis),) = annotate_rows([row], "default", NONE)
    first, second = hypothesis.readings
    assert [edit for edit in second if edit not in first]
    assert project_cherrant([row], NONE) == ["那迥在……"]


def test_difflib_takes_fewer_characters_for_chinese() -> None:
    """The last characters of the first block, from 龦 on, are not replaced; 龥 is."""
    rows = [Row("1", "甲龥乙", "甲龥乙", "甲丙乙"), Row("2", "甲龦乙", "甲龦乙", "甲丙乙")]
    assert project_difflib(rows, NONE) == ["甲丙乙", "甲龦乙"]


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
@settings(deadline=None, max_examples=150)
def test_edits_that_write_whitespace_are_read_back_as_published(rows: list[Row]) -> None:
    """If a script of the family stops at such lines, or loses a character, so does ours."""
    values = score(rows, "sighan", "strict").values
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
                options = Options(mode=mode, dictionaries=cilin)
                values = score(parity.rows(name, system), "cherrant", options=options).values
                assert parity.differing(expected, values) == {}, (mode, name, system)
    for name, system in parity.pairs():
        for key, expected in parity.golden("cllm")[name][system].items():
            if parity.PROJECTIONS.get(key, "").startswith("cherrant"):
                options = Options(projection=parity.PROJECTIONS[key], dictionaries=cilin)
                values = score(parity.rows(name, system), "cllm", options=options).values
                assert parity.differing(flatten(expected), values) == {}, (name, system, key)
