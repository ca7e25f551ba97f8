"""Scorers: properties of any rows, files and policies, and a slow oracle for the counts."""

from __future__ import annotations

import doctest
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_oracles import made_rows, slow_cscd

from cecbench import scorers
from cecbench.cli import cli
from cecbench.metrics import scan
from cecbench.metrics.base import (
    BEHAVIOUR_FIELDS,
    POLICIES,
    apply_policy,
    count_behaviour,
    flags,
    report_behaviour,
)
from cecbench.metrics.cscd import Cscd
from cecbench.metrics.rows import Row, count_positions
from cecbench.metrics.scan import behaviour_of, under_policy
from cecbench.scorers import SCORERS, Options, find_scorer, read_rows, score, score_file
from cecdata.common.errors import InputError, UsageError
from cecdata.hanzi import errortypes
from cecdata.hanzi.edits import apply
from cecdata.hanzi.errortypes import LEAVES, SENTENCE, errors_of, in_row, sentence_type

# Few characters, so that strings are similar: also extension B, full width, a mark, an emoji.
ALPHABET = "的得已己𠀀，, Ａ\u0301👧"
text = st.text(alphabet=ALPHABET, min_size=1, max_size=7)
any_rows = st.lists(st.tuples(text, text, st.text(alphabet=ALPHABET, max_size=8)), max_size=12)
CSCD = Cscd()
SINGLE = ("cscd", "lemon", "sighan", "pycorrector")


@st.composite
def equal_rows(draw: st.DrawFn) -> list[Row]:
    size = draw(st.integers(1, 12))
    rows = []
    for number in range(size):
        length = draw(st.integers(1, 6))
        one = st.text(alphabet=ALPHABET, min_size=length, max_size=length)
        rows.append(Row(str(number), draw(one), draw(one), draw(one)))
    return rows


def totals(fields: Sequence[str], counts: np.ndarray) -> dict[str, int]:
    return dict(zip(fields, counts.sum(axis=0).tolist(), strict=True))


def numbered(texts: list[tuple[str, str, str]]) -> list[Row]:
    return [Row(str(number), *three) for number, three in enumerate(texts)]


@given(equal_rows())
@settings(deadline=None)
def test_cscd_counts_equal_the_slow_oracle(rows: list[Row]) -> None:
    """The vectorised counts are those of a loop over positions."""
    sums = totals(CSCD.fields, CSCD.count(rows))
    assert CSCD.report(sums)["counts_tp_pred_gold"] == slow_cscd(rows)


def test_cscd_counts_of_many_rows_equal_the_slow_oracle() -> None:
    """The counts of blocks of sentences are joined in order."""
    rows = list(made_rows(2500, equal=True))
    counts = CSCD.count(rows)
    assert CSCD.report(totals(CSCD.fields, counts))["counts_tp_pred_gold"] == slow_cscd(rows)
    assert (counts[1500:] == CSCD.count(rows[1500:])).all()


@pytest.mark.parametrize("scorer", SINGLE)
@given(texts=any_rows, seed=st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_rows_in_another_order_change_nothing(
    scorer: str, texts: list[tuple[str, str, str]], seed: int
) -> None:
    """A score does not depend on the order of the rows, and counts of parts add up."""
    made = find_scorer(scorer, Options())
    rows = apply_policy(numbered(texts), made.policy)
    shuffled = rows.copy()
    random.Random(seed).shuffle(shuffled)
    whole = totals(made.fields, made.count(rows))
    assert whole == totals(made.fields, made.count(shuffled))
    assert whole == totals(
        made.fields, np.concatenate([made.count(rows[:5]), made.count(rows[5:])])
    )


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_an_oracle_scores_full_and_copies_over_correct_nothing(scorer: str) -> None:
    """Predictions that equal the targets score 100 percent by every scorer's headline; a system
    that copies has no over-correction and no length violation.
    """
    texts = [("他己经来", "他已经来"), ("今天好", "今天好")]
    headline = score([(s, s, t, t) for s, t in texts], scorer).headline
    assert headline is not None
    assert min(headline, 100 * headline) > 0.999999
    values = score([(s, s, t, s) for s, t in texts], scorer).values
    rates = {"over_correction_rate": 0, "over_correction_per_1000_chars": 0, "copy_rate": 1}
    for name, rate in {**rates, "length_violation_rate": 0}.items():
        assert values[f"behaviour.{name}"] == rate


def test_behaviour_counts_clean_sentences_alone() -> None:
    """Over-correction is measured on sentences without an error, in sentences and characters."""
    rows = numbered(
        [("今天好。", "今天好。", "今天很好"), ("己经", "已经", "以往"), ("好", "好", "")]
    )
    rates = report_behaviour(totals(BEHAVIOUR_FIELDS, count_behaviour(rows)))
    assert rates["over_correction_rate"] == 1
    assert rates["over_correction_per_1000_chars"] == 1000 * 3 / 5
    assert rates["length_violation_rate"] == 1 / 3
    assert rates["empty_rate"] == 1 / 3


@given(any_rows)
@settings(deadline=None)
def test_policies_keep_their_promises(texts: list[tuple[str, str, str]]) -> None:
    """After revert and drop lengths are equal; strict keeps all; revert keeps equal targets."""
    rows = numbered(texts)
    assert apply_policy(rows, "strict") == rows
    for policy in ("revert", "drop"):
        kept = apply_policy(rows, policy)
        assert all(len(s) == len(t) == len(p) for _, s, t, p in kept)
    ids = [row.id for row in apply_policy(rows, "revert")]
    assert ids == [row.id for row in rows if len(row.source) == len(row.target)]


def test_where_the_published_script_stops_ours_says_so_and_goes_on() -> None:
    """Different lengths under strict give an error, and numbers of the policy that it names."""
    rows = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "己经", "已经", "已经")]
    strict, revert = (score(rows, "cscd", Options(name)) for name in ("strict", "revert"))
    assert strict.values["error"] == "AssertionError"
    assert "policy revert" in str(strict.values["error_because"])
    assert strict.values["scored_policy"] == strict.signature.policy == "revert"
    assert strict.values["S_C_r"] == revert.values["S_C_r"] == 50
    assert (strict.counts == revert.counts).all()


def test_unknown_names_are_refused_with_the_nearest() -> None:
    """A scorer, a policy, a projection or a mode that does not exist is a UsageError."""
    with pytest.raises(UsageError, match="did you mean 'cscd'"):
        score([], "cscdd")
    with pytest.raises(UsageError, match="does not support --unequal-length project"):
        score([], "cscd", Options("project"))
    with pytest.raises(UsageError, match="unknown projection 'x'"):
        score([], "cllm", options=Options(projection="x"))
    with pytest.raises(UsageError, match="unknown ChERRANT mode 'x'"):
        score([], "cherrant", options=Options(mode="x"))
    with pytest.raises(UsageError, match="--mode works with the scorer cherrant"):
        score([], "cscd", options=Options(mode="first"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\t己\t已\t已\n2\t己\t已\n", "line 2 has 3 columns, but line 1 has 4"),
        ("1\t己\t已\t已\n1\t好\t好\t好\n", "line 2: id '1' is also the id of line 1"),
        ("1\t\t已\t已\n", "line 1: the source is empty"),
        ("\t己\t已\t已\n", "line 1: the id is empty"),
        ("", "no rows"),
        (b"1\t\xff\t\xff\t\xff\n", "is not UTF-8 .*at byte 2"),
    ],
)
def test_malformed_files_are_named_by_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    """A file that cannot be scored is refused, and the message names the line."""
    path = tmp_path / "answers.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        score_file(path, "cscd")


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    """A separator inside a sentence is kept; a byte order mark and carriage returns are not."""
    path = tmp_path / "answers.tsv"
    path.write_bytes("\ufeff1\t好\u2028\t好\u2028\t好\u2028\r\n2\t己\t已\t\r\n".encode())
    assert list(read_rows(path)) == [
        Row("1", "好\u2028", "好\u2028", "好\u2028"),
        Row("2", "己", "已", ""),
    ]


def test_a_file_gives_what_its_rows_give(tmp_path: Path) -> None:
    """A file that is read in blocks gives the score of its rows, including the signature."""
    rows = list(made_rows(2500, equal=False))
    path = tmp_path / "answers.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    for scorer in SINGLE:
        for policy in ("strict", "revert", "drop"):
            values = score_file(path, scorer, Options(policy), benchmark="made")
            assert values == score(rows, scorer, Options(policy), benchmark="made").values


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    """`--json` prints what score_file gives; expected failures end with a message and a code."""
    path = tmp_path / "answers.tsv"
    path.write_text("1\t他己经来\t他已经来\t他已经来\n", encoding="utf-8")
    runner = CliRunner()
    done = runner.invoke(cli, ["score", str(path), "--scorer", "lemon", "--json"])
    assert json.loads(done.output) == score_file(path, "lemon", bootstrap=1000)
    plain = runner.invoke(cli, ["score", str(path)])
    assert plain.exit_code == 0
    assert "S_C_f1" in plain.output
    bad = runner.invoke(cli, ["score", str(path), "--scorer", "bleu"])
    assert (bad.exit_code, "unknown scorer 'bleu'" in bad.output) == (2, True)
    lost = runner.invoke(cli, ["score", str(path) + "x"])
    assert (lost.exit_code, "cannot be read" in lost.output) == (1, True)


def test_every_policy_of_a_scorer_is_known() -> None:
    """Scorers name only policies that exist, and score under each."""
    rows = [("1", "他己经来", "他已经来", "他已经来")]
    for name in SCORERS:
        for policy in find_scorer(name, Options()).policies:
            assert policy in POLICIES
            assert score(rows, name, Options(policy)).signature.rows_scored == 1


def test_the_page_on_scorers_is_true() -> None:
    """Every example of docs/reference/scorers.md gives what the page says."""
    page = Path(__file__).parents[2] / "docs/reference/scorers.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 15
    assert failed == 0


CASES = [
    ("我门在一起", "我们在一起", ["near-sound"]),  # men2, men5
    ("他以经来了", "他已经来了", ["homophone"]),  # yi3, yi3
    ("他己经来了", "他已经来了", ["same-stroke"]),  # ji3 and yi3: a look-alike, not a sound-alike
    ("末来很好", "未来很好", ["same-stroke"]),
    ("大阳出来了", "太阳出来了", ["fewer-stroke"]),
    ("太家都来了", "大家都来了", ["more-stroke"]),
    ("言吴会解开了", "误会解开了", ["split-merge"]),
    ("误会解开了", "言吴会解开了", ["split-merge"]),
    ("你好#啊", "你好啊", ["symbol"]),
    ("你好,啊", "你好，啊", ["symbol"]),
    ("你好啊", "你好啊。", ["symbol"]),
    ("们我在这里", "我们在这里", ["order"]),
    ("在我这里们", "在我们这里", ["order"]),
    ("我吃了饭了", "我吃饭了", ["other"]),
    ("天气很好", "天气很好", []),
    ("他以经来了#", "他已经来了", ["homophone", "symbol"]),
]


@pytest.mark.parametrize(("source", "reference", "categories"), CASES)
def test_every_category_by_an_example(source, reference, categories):
    """Each category agrees with its description."""
    assert [error.category for error in errors_of(source, reference)] == categories


def test_a_sentences_category_follows_from_its_errors():
    """Without errors it is clean; equal categories keep theirs; others are stroke or mixed."""
    assert sentence_type("好", "好") == "clean"
    assert sentence_type("他以经来了", "他已经来了") == "homophone"
    assert sentence_type("太家看大阳", "大家看太阳") == "stroke"
    assert sentence_type("他以经来了#", "他已经来了") == "mixed"


def test_the_stroke_row_takes_its_three_in_and_no_other():
    """The row `stroke` includes more, fewer, same, and sentences that mix them."""
    rows = {name for name in SENTENCE if in_row(name, "stroke")}
    assert rows == {"more-stroke", "fewer-stroke", "same-stroke", "stroke"}
    assert set(SENTENCE) == set(errortypes.MEANING)


alphabet = st.sampled_from("已己以误言吴大太天在再们我#，。Aé́𠀀😀長长 ")
texts = st.text(alphabet, max_size=8)


@given(texts, texts)
def test_errors_lead_from_the_reference_to_the_source(source, reference):
    """Applied to the reference, the errors give the source: none is lost or counted twice."""
    errors = errors_of(source, reference)
    assert apply(reference, [error.edit for error in errors]) == source
    for error in errors:
        assert error.category in LEAVES


SIGNS = "己已经，。aAé ߿ࠀ\u2028\u3000퟿﻿𠀀👨\U0010ffff"
cells = st.text(SIGNS, max_size=7)
tables = st.lists(
    st.tuples(st.text("ab一𠮷", min_size=1, max_size=4), cells, cells, cells), min_size=1
)


def written(given_rows: list[tuple[str, str, str, str]]) -> bytes:
    # About half of the rows get equal strings, as most sentences have.
    return "".join(
        f"{name}\t{s or 'x'}\t{s or 'x' if len(t) > 3 else t}\t{t if len(p) > 4 else p}\n"
        for name, s, t, p in given_rows
    ).encode()


@given(tables)
def test_a_scan_counts_what_the_rows_give(given_rows: list[tuple[str, str, str, str]]) -> None:
    """Positions, whole strings and behaviour of a scanned block are those of its parsed rows."""
    raw = written(given_rows)
    scanned = scan.scan(raw)
    assert scanned is not None
    block = [Row(*line.split("\t")) for line in raw.decode().removesuffix("\n").split("\n")]
    assert len(scanned) == len(block)
    for policy in ("strict", "revert", "drop"):
        where, whole = under_policy(scanned, policy)
        kept = apply_policy(block, policy)
        slow = count_positions(kept)
        for name in ("gold", "changed", "detected", "corrected"):
            assert getattr(where, name).tolist() == getattr(slow, name).tolist(), (policy, name)
        for mine, theirs in zip(whole, flags(kept), strict=True):
            assert mine.tolist() == theirs.tolist()
    assert behaviour_of(scanned).tolist() == count_behaviour(block).tolist()
    assert len(set(scanned.ids.tolist())) == len({row.id for row in block})
    assert [Row(row.id, *scanned.texts(at)) for at, row in enumerate(block)] == block
    identity = "".join(f"{row.id}\t{row.source}\t{row.target}\n" for row in block)
    assert scanned.identity.tobytes() == identity.encode()


@given(st.binary(max_size=40), st.integers(0, 40))
def test_only_sound_blocks_are_scanned(noise: bytes, at: int) -> None:
    """A block is scanned if and only if Python can decode it and every line has four cells."""
    sound = "1\t己经\t已经\t𠀀\n".encode()
    raw = sound[:at] + noise + sound[at:]
    try:
        lines = raw.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        lines = []
    cells = [line.split("\t") for line in lines]
    whole = bool(cells) and all(len(c) == 4 and c[0] and c[1] for c in cells)
    assert (scan.scan(raw) is not None) == (whole and b"\r" not in raw)


TAILS = (
    b"", b"\x80", b"\x8f\x80", b"\x90\x80", b"\x9f\xbf", b"\xa0\x80", b"\x80\x80\x80",
    b"\x8f\xbf\xbf", b"\x90\x80\x80",
)  # fmt: skip


def test_every_lead_byte_is_judged_as_python_does() -> None:
    """Overlong forms, surrogates and code points beyond the last plane are refused."""
    for raw in (
        b"1\tx\ty\t" + bytes([first]) + tail + b"\n"
        for first in (0x41, *range(0x80, 0x100))
        for tail in TAILS
    ):
        try:
            raw.decode("utf-8")
            sound = True
        except UnicodeDecodeError:
            sound = False
        assert (scan.scan(raw) is not None) == sound, raw


@pytest.mark.parametrize("scorer", ["cscd", "lemon"])
def test_a_scanned_file_scores_as_a_parsed_one(
    scorer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`score_file` returns the same for a scanned and a parsed file, including the interval."""
    draw = np.random.default_rng(3)
    alphabet = list("己已经以他她，。")
    path = tmp_path / "rows.tsv"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number in range(3000):
            target = draw.choice(alphabet, 9)
            source, said = target.copy(), target.copy()
            if number % 3:
                source[draw.integers(9)] = "门"
            if number % 5 == 0:
                said[draw.integers(9)] = "们"
            answer = "".join(said) + "了" * (number % 7 == 0)
            end = "\r\n" if number > 2500 else "\n"  # the last block is for the parser
            file.write(f"{number}\t{''.join(source)}\t{''.join(target)}\t{answer}{end}")
    for policy in ("strict", "revert", "drop"):
        values = []
        for pays in (True, False):
            monkeypatch.setattr(scorers, "_pays", lambda _, pays=pays: pays)
            values.append(scorers.score_file(path, scorer, Options(policy), bootstrap=1000))
        assert values[0] == values[1]


def test_an_id_that_comes_twice_is_found_across_the_ways_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated id is reported also if one of its rows was scanned and the other parsed."""
    path = tmp_path / "rows.tsv"
    lines = [f"{n}\t己经{'。' * 60}\t已经\t已经\n" for n in range(3000)]
    path.write_text("".join(lines) + "7\ta\ta\ta\r\n", encoding="utf-8", newline="\n")
    monkeypatch.setattr(scorers, "_pays", lambda _: True)
    with pytest.raises(InputError, match="line 3001: id '7' is also the id of line 8"):
        scorers.score_file(path, "cscd")
