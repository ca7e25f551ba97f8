"""Protected spans: what is found, against a slow search, and that no operator touches it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from protected import spans_of

from cecdata.commands.build import build
from cecdata.commands.datasets import verify
from cecdata.commands.look import preview
from cecdata.common.errors import InputError
from cecdata.common.kernels import string_buffers
from cecdata.config import RECIPES, load
from cecdata.corpus.ids import id_column
from cecdata.corpus.protect import FIRST, FURTHER, Protection, read_names
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
NAMES = ("张三", "张三丰", "三丰集团", "A厂", "𠀀", "é", "中")
PIECES = (
    "我", "们", "张三", "张三丰", "三丰集团", "丰集", "，", "。", "12", "3", ".", "-", ":", "：",
    "%", "a", "B厂", "A厂", "http", "://", "www.", "?q=1", "/", "+", "#", "$", " ", "１", "．",
    "é", "ü",
    "𠀀", "👩", "\u200d", "👧", "e\u0301", "<ADDR>", "°", "C", "@", "_", "中",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def slow_marks(text, names=(), spans=True):
    """The same by Python's regular expressions and substring search."""
    marks, at = [0] * len(text), 0

    def put(start, end):
        for place in range(start, end):
            marks[place] = max(marks[place], FIRST if place == start else FURTHER)

    while spans and (found := SPAN.search(text, at)):
        at = found.end()
        if not found["url"] and (www := WWW.match(text, found.start("w"))):
            at = max(at, www.end())
        put(found.start(), at)
    for name in names:
        for place in range(len(text)):
            if text.startswith(name, place):
                put(place, place + len(name))
    return marks


@given(TEXTS, st.lists(st.sampled_from(NAMES), max_size=4), st.booleans())
def test_marks_are_those_of_a_slow_search(text, names, spans):
    """The compiled scan marks what regular expressions and substring search find."""
    data, offsets = string_buffers(pa.array([text]))
    found = Protection.of(spans, names).marks(data, offsets).tolist()
    slow = slow_marks(text, names, spans)
    assert (found or [0] * len(text)) == slow


@given(st.lists(TEXTS, max_size=5), st.integers(0, 5))
def test_a_slice_of_a_batch_is_marked_alike(texts, first):
    """Sentences of a batch, or of a slice of it, are marked as each by itself."""
    protection = Protection.of(True, NAMES)
    batch = pa.array(["前", *texts], pa.string()).slice(min(first, len(texts)) + 1)
    data, offsets = string_buffers(batch)
    held = texts[min(first, len(texts)) :]
    found = protection.marks(data, offsets)
    slow = [mark for text in held for mark in slow_marks(text, NAMES)]
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
    assert [text[start:end] for start, end in spans_of(text, Protection.of(True, []))] == wanted


def test_names_from_a_file(tmp_path):
    """One a line, in the normal form of sentences, sorted, each once."""
    path = tmp_path / "names.txt"
    path.write_text("\ufeff张三丰\n\n  三丰集团 \r\ne\u0301tude\n张三丰\n", "utf-8")
    assert read_names(path) == ("étude", "三丰集团", "张三丰")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\n \n", "no name"), ("张".encode("gbk"), "is not UTF-8"), (b"a\x00b\n", "control_char"),
     ("名".encode() * 300, ":1: the name has 300")],
)  # fmt: skip
def test_bad_lists_of_names_are_refused(tmp_path, content, said):
    """An empty list, another encoding, a control character, a whole text: each is named."""
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_names(path)


def test_nothing_to_protect_costs_no_mark():
    """Without spans and names there are no marks at all."""
    data, offsets = string_buffers(pa.array(["3.14"]))
    assert len(Protection.of(False, []).marks(data, offsets)) == 0
    data, offsets = string_buffers(pa.array(["我们", ""]))
    assert len(Protection.of(True, ["张三"]).marks(data, offsets)) == 0
    data, offsets = string_buffers(pa.array([], pa.string()))
    assert Protection.of(True, []).marks(data, offsets).size == 0


EVERY = load(
    "typed", mixed=0.3, mixed_rate=0.3, copies=8, max_edits=6, min_chars=1, max_chars=120,
    prior=dict.fromkeys(OPERATORS, 1.0), rate=dict.fromkeys(OPERATORS, 0.3),
)  # fmt: skip
HAN = st.text("我们的权利一不小心已经快很看天气误女子字典在再木张三丰集团中。，：", max_size=8)


def edits_on(config, texts):
    """(text, start, end) of every edit that the engine makes in these texts."""
    text = pa.array(texts, pa.string())
    batch = pa.RecordBatch.from_arrays(
        [id_column(text), text, pa.array([""] * len(texts))], schema=SENTENCE
    )
    for row in Perturber.calibrated(config, text).pairs(batch).table.to_pylist():
        for edit in row["edits"]:
            yield row["target"], edit["start"], edit["end"], edit["operator"]


def check_untouched(config, texts):
    """No edit begins or ends inside a protected span, or covers any of one."""
    protection, struck = Protection.of(config.protect_spans, config.protect), 0
    for text, start, end, operator in edits_on(config, texts):
        struck += 1
        for first, last in spans_of(text, protection):
            beside = end <= first or start >= last
            assert beside, (text, text[first:last], start, end, operator)
    return struck


@settings(max_examples=25)
@given(
    st.lists(st.lists(HAN | st.sampled_from(PIECES), min_size=1, max_size=10).map("".join),
             min_size=1, max_size=6),
    st.lists(st.sampled_from(NAMES), max_size=3),
    st.booleans(),
)  # fmt: skip
def test_no_operator_touches_what_is_protected(texts, names, spans):
    """Whatever the text and the names, for every operator, alone and several in a pair."""
    texts = [text for text in texts if text]
    check_untouched(replace(EVERY, protect=tuple(names), protect_spans=spans), texts)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_neighbours_are_struck_all_the_same(recipe, name):
    """Each operator strikes beside what is protected, and never within, in every recipe."""
    config = load(recipe, copies=16, prior={**dict.fromkeys(load(recipe).prior, 0.0), name: 1.0},
                  rate={name: 0.1}, protect_spans=True, protect=("权利集团", "误会"))  # fmt: skip
    texts = [
        "我们的权利，一不小心3.14误会权利集团",
        "天气很好，见https://a.cn/路，女子的字典12:30。",
    ]
    assert check_untouched(config, texts) > 0


def test_the_command_line_takes_names(tmp_path):
    """`--protect FILE` keeps names whole in preview and build; the manifest holds the names."""
    names, corpus = tmp_path / "names.txt", tmp_path / "corpus.txt"
    names.write_text("权利的游戏\n", "utf-8")
    corpus.write_text("我们都爱看权利的游戏。\n他说权利的游戏好看。\n", "utf-8")
    shown = CliRunner().invoke(
        preview, ["我们都爱看权利的游戏。", "--protect", str(names), "--copies", "40", "--json"]
    )
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.output)
    assert rows
    assert all("权利的游戏" in row["source"] for row in rows)
    out = tmp_path / "out"
    done = CliRunner().invoke(build, [
        str(corpus), "--out", str(out), "--protect", str(names), "--filters", "levenshtein",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert manifest["configuration"]["protect"] == ["权利的游戏"]
    proved = CliRunner().invoke(verify, [str(out), "--full"])
    assert proved.exit_code == 0, proved.output


def test_a_name_is_protected_in_any_width():
    """The width of its letters and digits does not hide a name."""
    protection = Protection.of(False, ["iPhone15", "Ｃ罗"])
    text = "他买了ｉＰｈｏｎｅ１５，送给C罗。"
    found = [text[start:end] for start, end in spans_of(text, protection)]
    assert found == ["ｉＰｈｏｎｅ１５", "C罗"]
