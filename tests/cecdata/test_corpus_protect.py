"""Protected spans: what is found, against a slow search, and that no operator touches it."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protected import spans_of

from cecdata.common.kernels import view_string_buffers
from cecdata.config import RECIPES, load
from cecdata.corpus.ids import make_id_column
from cecdata.corpus.protect import FIRST, FURTHER, mark_spans
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE

LETTER, DIGIT = "A-Za-zＡ-Ｚａ-ｚÀ-ÖØ-öø-ɏ", "0-9０-９"
WORD = f"[{LETTER}{DIGIT}]"
JOINT = (
    rf"(?:[-_]+(?={WORD})|[./'’@&+·°](?={WORD})"
    rf"|(?<=[{DIGIT}])[,:：．~～／－—](?=[{DIGIT}]))"
)  # fmt: skip
SPAN = re.compile(
    rf"(?:[$￥¥€£+\-−±＋－](?=[{DIGIT}]))?(?P<w>{WORD}+(?:{JOINT}{WORD}+)*)"
    rf"(?:(?<=[{DIGIT}])[%％‰℃℉°]|(?<=[{LETTER}])(?:#|\+{{1,2}}))?"
    r"(?P<url>://(?:[!-~]*[0-9A-Za-z/=&#_-])?)?"
)
WWW = re.compile(r"(?i:www)\.[!-~]*[0-9A-Za-z/=&#_-]")
PIECES = (
    "我", "们", "张三", "张三丰", "三丰集团", "丰集", "，", "。", "12", "3", ".", "-", ":", "：",
    "%", "a", "B厂", "A厂", "http", "://", "www.", "?q=1", "/", "+", "#", "$", " ", "１", "．",
    "é", "ü",
    "𠀀", "👩", "\u200d", "👧", "e\u0301", "<ADDR>", "°", "C", "@", "_", "中",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def slow_marks(text):
    """The same by Python's regular expressions."""
    marks, at = [0] * len(text), 0
    while found := SPAN.search(text, at):
        at = found.end()
        if not found["url"] and (www := WWW.match(text, found.start("w"))):
            at = max(at, www.end())
        marks[found.start() : at] = [FIRST, *[FURTHER] * (at - found.start() - 1)]
    return marks


@given(TEXTS)
def test_marks_are_those_of_a_slow_search(text):
    """The compiled scan marks what regular expressions find."""
    data, offsets = view_string_buffers(pa.array([text]))
    found = mark_spans(data, offsets).tolist()
    assert (found or [0] * len(text)) == slow_marks(text)


@given(st.lists(TEXTS, max_size=5), st.integers(0, 5))
def test_a_slice_of_a_batch_is_marked_alike(texts, first):
    """Sentences of a batch, or of a slice of it, are marked as each by itself."""
    batch = pa.array(["前", *texts], pa.string()).slice(min(first, len(texts)) + 1)
    found = mark_spans(*view_string_buffers(batch))
    slow = [mark for text in texts[min(first, len(texts)) :] for mark in slow_marks(text)]
    assert found.tolist() == slow or (len(found) == 0 and not any(slow))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("圆周率是3.14。", ["3.14"]),
        ("12:30开会，2024-01-02结束", ["12:30", "2024-01-02"]),
        ("涨了50%，共$5,000.50", ["50%", "$5,000.50"]),
        ("零下-5℃，１２．５％", ["-5℃", "１２．５％"]),
        ("写信给a.b_c+d@e-f.com.cn吧", ["a.b_c+d@e-f.com.cn"]),
        ("见https://a.cn/b?q=1&r=2。", ["https://a.cn/b?q=1&r=2"]),
        ("见 www.a.cn/?x=1, 好", ["www.a.cn/?x=1"]),
        ("用C++和C#写，Wi-Fi连iPhone15", ["C++", "C#", "Wi-Fi", "iPhone15"]),
        ("OK,我们1，2，3", ["OK", "1", "2", "3"]),
        ("三十公里", []),
    ],
)
def test_what_is_a_span(text, wanted):
    """Numbers with what is inside them, words, addresses: one span each, and nothing around it."""
    assert [text[start:end] for start, end in spans_of(text)] == wanted


def test_nothing_to_protect_costs_no_mark():
    """Without spans there are no marks at all."""
    for texts in (["我们", ""], []):
        assert mark_spans(*view_string_buffers(pa.array(texts, pa.string()))).size == 0


EVERY = load(
    "typed", mixed=0.3, mixed_rate=0.3, copies=8, max_edits=6, min_chars=1, max_chars=120,
    prior=dict.fromkeys(OPERATORS, 1.0), rate=dict.fromkeys(OPERATORS, 0.3),
)  # fmt: skip
HAN = st.text("我们的权利一不小心已经快很看天气误女子字典在再木张三丰集团中。，：", max_size=8)


def edits_on(config, texts):
    """(text, start, end) of every edit that the engine makes in these texts."""
    text = pa.array(texts, pa.string())
    batch = pa.RecordBatch.from_arrays(
        [make_id_column(text), text, pa.array([""] * len(texts))], schema=SENTENCE
    )
    for row in Perturber.calibrated(config, text).pairs(batch).table.to_pylist():
        for edit in row["edits"]:
            yield row["target"], edit["start"], edit["end"], edit["operator"]


def check_untouched(config, texts):
    """No edit begins or ends inside a protected span, or covers any of one."""
    struck = 0
    for text, start, end, operator in edits_on(config, texts):
        struck += 1
        for first, last in spans_of(text) if config.protect_spans else ():
            beside = end <= first or start >= last
            assert beside, (text, text[first:last], start, end, operator)
    return struck


@settings(max_examples=25)
@given(
    st.lists(st.lists(HAN | st.sampled_from(PIECES), min_size=1, max_size=10).map("".join),
             min_size=1, max_size=6),
    st.booleans(),
)  # fmt: skip
def test_no_operator_touches_what_is_protected(texts, spans):
    """Whatever the text, for every operator, alone and several in a pair."""
    texts = [text for text in texts if text]
    check_untouched(replace(EVERY, protect_spans=spans), texts)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_neighbours_are_struck_all_the_same(recipe, name):
    """Each operator strikes beside what is protected, and never within, in every recipe."""
    config = load(recipe, copies=16, prior={**dict.fromkeys(load(recipe).prior, 0.0), name: 1.0},
                  rate={name: 0.1}, protect_spans=True)  # fmt: skip
    texts = [
        "我们的权利，一不小心3.14误会权利集团",
        "天气很好，见https://a.cn/路，女子的字典12:30。",
    ]
    assert check_untouched(config, texts) > 0
