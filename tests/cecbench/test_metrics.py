"""Scorers: properties of any rows and files, and a slow oracle for the counts."""

from __future__ import annotations

import doctest
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from corrupting import apply
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_oracles import made_rows, slow_cscd

from cecbench.cli import cli
from cecbench.metrics.base import (
    BEHAVIOUR_FIELDS,
    UNEQUAL_LENGTH,
    count_behaviour,
    report_behaviour,
)
from cecbench.metrics.rows import Row
from cecbench.scorers import SCORERS, find_scorer, read_rows, score, score_file
from cecdata.common.errors import InputError, UsageError
from cecdata.hanzi import errortypes
from cecdata.hanzi.errortypes import (
    LEAVES,
    SENTENCE,
    counts_in_row,
    find_errors,
    name_sentence_type,
)

# Few characters, so that strings are similar: also extension B, full width, a mark, an emoji.
ALPHABET = "的得已己𠀀，, Ａ\u0301👧"
text = st.text(alphabet=ALPHABET, min_size=1, max_size=7)
any_rows = st.lists(st.tuples(text, text, st.text(alphabet=ALPHABET, max_size=8)), max_size=12)
CSCD = find_scorer("cscd")
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
    made = find_scorer(scorer)
    rows = UNEQUAL_LENGTH[made.unequal_length](numbered(texts))
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
def test_each_way_with_unequal_lengths_keeps_its_promise(texts: list[tuple[str, str, str]]) -> None:
    """After revert and drop lengths are equal; strict keeps all; revert keeps equal targets."""
    rows = numbered(texts)
    assert UNEQUAL_LENGTH["strict"](rows) == rows
    for policy in ("revert", "drop"):
        kept = UNEQUAL_LENGTH[policy](rows)
        assert all(len(s) == len(t) == len(p) for _, s, t, p in kept)
    ids = [row.id for row in UNEQUAL_LENGTH["revert"](rows)]
    assert ids == [row.id for row in rows if len(row.source) == len(row.target)]


def test_where_the_published_script_stops_ours_says_so_and_goes_on() -> None:
    """Different lengths under strict give an error, and numbers of the way that it names."""
    rows = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "己经", "已经", "已经")]
    strict, revert = (
        score(rows, "cscd", {"unequal_length": name}) for name in ("strict", "revert")
    )
    assert strict.values["error"] == "AssertionError"
    assert "--unequal-length revert" in str(strict.values["error_because"])
    assert strict.values["scored_unequal_length"] == strict.signature.unequal_length == "revert"
    assert strict.values["S_C_r"] == revert.values["S_C_r"] == 50
    assert (strict.counts == revert.counts).all()


def test_unknown_names_are_refused_with_the_nearest() -> None:
    """A scorer, a way with lengths, a projection or a mode that does not exist is a UsageError."""
    with pytest.raises(UsageError, match="did you mean 'cscd'"):
        score([], "cscdd")
    with pytest.raises(UsageError, match="no --unequal-length of the scorer cscd 'project'"):
        score([], "cscd", {"unequal_length": "project"})
    with pytest.raises(UsageError, match="no projection 'x'"):
        score([], "cllm", options={"projection": "x"})
    with pytest.raises(UsageError, match="no ChERRANT mode 'x'"):
        score([], "cherrant", options={"mode": "x"})
    with pytest.raises(UsageError, match="--policy is unknown"):
        score([], "cscd", {"policy": "revert"})
    with pytest.raises(UsageError, match="--cilin works with the scorer cllm or cherrant"):
        score([], "lemon", {"cilin": "x"})
    with pytest.raises(UsageError, match="--mode works with the scorer cherrant"):
        score([], "cscd", options={"mode": "first"})


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
            values = score_file(path, scorer, {"unequal_length": policy}, benchmark="made")
            expected = score(rows, scorer, {"unequal_length": policy}, benchmark="made").values
            del values["interval"]
            values["signature.bootstrap"] = "none"
            values["signature"] = expected["signature"]
            assert values == expected


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    """`--json` prints what score_file gives; expected failures end with a message and a code."""
    path = tmp_path / "answers.tsv"
    path.write_text("1\t他己经来\t他已经来\t他已经来\n", encoding="utf-8")
    runner = CliRunner()
    done = runner.invoke(cli, ["score", str(path), "--scorer", "lemon", "--json"])
    assert json.loads(done.output) == score_file(path, "lemon")
    plain = runner.invoke(cli, ["score", str(path)])
    assert plain.exit_code == 0
    assert "S_C_f1" in plain.output
    bad = runner.invoke(cli, ["score", str(path), "--scorer", "bleu"])
    assert (bad.exit_code, "no scorer 'bleu'" in bad.output) == (2, True)
    lost = runner.invoke(cli, ["score", str(path) + "x"])
    assert (lost.exit_code, "cannot be read" in lost.output) == (1, True)


@pytest.mark.parametrize(
    ("predictions", "said"),
    [
        (["他已经来了。 ", "天气好。\n"], ["2 of 2", "differ in length", "2 only by white space"]),
        (["他已经来了。", "\u3000天气好。"], ["1 of 2", "1 only by white space"]),
        (
            ["他已经来了，真的。", "天气好。"],
            ["1 of 2 predictions differ in length from their source"],
        ),
        (["他已经来了.", "天气好｡"], ["2 of 2 predictions write a character in another width"]),
        (["他已经来了。", "天气好。"], []),
    ],
)
def test_a_suspicious_file_is_told_beside_its_score(tmp_path, predictions, said) -> None:
    """The published number stays; `score`, `run` and a printed score say what may be wrong."""
    pairs = [("他己经来了。", "他已经来了。"), ("天气好。", "天气好。")]
    rows = [(str(n), *pair, p) for n, (pair, p) in enumerate(zip(pairs, predictions, strict=True))]
    answers, gold = tmp_path / "answers.json", tmp_path / "gold.tsv"
    names = ("id", "source", "target", "prediction")
    answers.write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    )
    answers = answers.rename(tmp_path / "answers.jsonl")
    gold.write_text("".join(f"{a}\t{b}\n" for _, a, b, _ in rows), "utf-8")
    outputs = [
        str(score(rows, "cscd")),
        CliRunner().invoke(cli, ["score", str(answers)]).output,
        CliRunner()
        .invoke(cli, ["run", "--benchmark", str(gold), "--system", f"predictions:{answers}"])
        .output,
    ]
    for output in outputs:
        assert all(part in output for part in said), output
        assert said or " of 2 predictions" not in output


def test_why_nothing_is_printed_is_true() -> None:
    """Reverted predictions are no unchanged ones; without an error there is nothing to find."""
    changed = score([("1", "己经", "已经", "已经 ")], "cscd").values["raises_because"]
    assert "one of another length than its source counts as the source" in str(changed)
    assert "no scored sentence has an error" in str(
        score([("1", "已经", "已经", "己经")], "cscd").values["raises_because"]
    )


def test_a_score_prints_what_one_pastes_into_a_paper() -> None:
    """The headline with its value, and the signature; not the counts of every sentence."""
    result = score([("1", "己经", "已经", "已经")], "cscd")
    assert str(result).splitlines() == ["S_C_f1 100.0", result.signature.short()]


def test_every_way_with_unequal_lengths_is_known() -> None:
    """Scorers name only ways that exist, and score in each."""
    rows = [("1", "他己经来", "他已经来", "他已经来")]
    for name in SCORERS:
        for how in find_scorer(name).unequal_lengths:
            assert how in UNEQUAL_LENGTH
            assert score(rows, name, {"unequal_length": how}).signature.rows_scored == 1


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
    assert [error.category for error in find_errors(source, reference)] == categories


def test_a_sentences_category_follows_from_its_errors():
    """Without errors it is clean; equal categories keep theirs; others are stroke or mixed."""
    assert name_sentence_type("好", "好") == "clean"
    assert name_sentence_type("他以经来了", "他已经来了") == "homophone"
    assert name_sentence_type("太家看大阳", "大家看太阳") == "stroke"
    assert name_sentence_type("他以经来了#", "他已经来了") == "mixed"


def test_the_stroke_row_takes_its_three_in_and_no_other():
    """The row `stroke` includes more, fewer, same, and sentences that mix them."""
    rows = {name for name in SENTENCE if counts_in_row(name, "stroke")}
    assert rows == {"more-stroke", "fewer-stroke", "same-stroke", "stroke"}
    assert set(SENTENCE) == set(errortypes.MEANING)


alphabet = st.sampled_from("已己以误言吴大太天在再们我#，。Aé́𠀀😀長长 ")
texts = st.text(alphabet, max_size=8)


@given(texts, texts)
def test_errors_lead_from_the_reference_to_the_source(source, reference):
    """Applied to the reference, the errors give the source: none is lost or counted twice."""
    errors = find_errors(source, reference)
    assert apply(reference, [error.edit for error in errors]) == source
    for error in errors:
        assert error.category in LEAVES
