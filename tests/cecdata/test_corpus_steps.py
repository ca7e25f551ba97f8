"""The steps of a row: normal form, sentences, masks, what is held out."""

from __future__ import annotations

import re
import time
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cecdata.corpus import characters as ch
from cecdata.corpus import privacy, sentences
from cecdata.corpus.ids import is_validation
from cecdata.corpus.normalise import (
    LOCATED_SENTENCE,
    Fault,
    measure_texts,
    normalise,
    normalise_text,
)
from cecdata.corpus.rows import repeat_text
from cecdata.shards.schema import REJECTED_ROW, ROW


def rows(texts) -> pa.RecordBatch:
    count = len(texts)
    arrays = [pa.array(texts, pa.string()), repeat_text("网", count), repeat_text("a.txt", count)]
    arrays += [pa.array(range(1, count + 1)), pa.nulls(count, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)


def sentences_of(text) -> list[str]:
    return sentences._cut_sentences(pa.array([text], pa.string()))[1].to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("天亮了。他走了！真的？", ["天亮了。", "他走了！", "真的？"]),
        ("他说：“走吧！”我没动。", ["他说：“走吧！”", "我没动。"]),
        ("（他来了。）我走了。", ["（他来了。）", "我走了。"]),
        ("什么？！不可能！！", ["什么？！", "不可能！！"]),
        ("他……走了。", ["他……走了。"]),
        ("“我……”他没说完。", ["“我……”", "他没说完。"]),
        ("网址 https://a.cn/?q=1!x 有3.5万人。", ["网址 https://a.cn/?q=1!x 有3.5万人。"]),
        ("Really? 是的!好", ["Really?", "是的!", "好"]),
        ("第一行\n第二行。第三句", ["第一行", "第二行。", "第三句"]),
        ("没有句末", ["没有句末"]),
        ("他说：“好的！”，然后就走了。", ["他说：“好的！”，然后就走了。"]),
        ("蔬菜（白菜，萝卜……），水果（苹果……）。", ["蔬菜（白菜，萝卜……），水果（苹果……）。"]),
        ("有人喊“着火了！”；有人跑了出去。", ["有人喊“着火了！”；有人跑了出去。"]),
        ("“着火了！”的喊声响起。他醒了。", ["“着火了！”的喊声响起。", "他醒了。"]),
        ("《醒来吧！》很好看。《谁？》也是。", ["《醒来吧！》很好看。", "《谁？》也是。"]),
        ("他（真的吗？）走了。她没有。", ["他（真的吗？）走了。", "她没有。"]),
        ("“走吧。我来了。”他说。", ["“走吧。我来了。”", "他说。"]),
        ("他说（没说完。天亮了。", ["他说（没说完。", "天亮了。"]),
        ("好！ ——他说。", ["好！ ——他说。"]),
        ('他走了。"好吧。"她说。', ["他走了。", '"好吧。"', "她说。"]),
        ("'好吧。'她说。I don't.走。I can't.", ["'好吧。'", "她说。", "I don't.走。", "I can't."]),
        ("", [""]),
        ("。。。", ["。。。"]),
    ],
)
def test_splitting(text, expected):
    """A sentence ends at its mark and keeps its closing quotes; numbers and URLs stay whole."""
    assert sentences_of(text) == expected


def test_brackets_and_commas_of_any_width_and_style():
    """No sentence begins with a mark that closes one, nor with a comma or dash."""
    pairs = "［］｛｝{}〖〗｢｣﹁﹂﹃﹄〝〞〝〟«»＂＂＇＇❛❜❝❞"
    pairs += "＜＞⟨⟩⟪⟫︽︾︿﹀⦅⦆｟｠⟦⟧⦃⦄﹙﹚﹛﹜﹝﹞︵︶︷︸︹︺︻︼﹇﹈⁅⁆❨❩❪❫❲❳❴❵"
    for opened, closed in zip(pairs[::2], pairs[1::2], strict=True):
        text = f"他说：{opened}好的！{closed}，然后就走了。"
        assert sentences_of(text) == [text]
        assert sentences_of(f"走了。{closed}好。") == [f"走了。{closed}", "好。"]
    for tail in "～〜~":
        assert sentences_of(f"好的！{tail}他走了。") == [f"好的！{tail}", "他走了。"]
    assert sentences_of("好｡行‼走⁉") == ["好｡", "行‼", "走⁉"]
    for mark in "､﹐﹑﹔﹕–―─－‑⸻︐﹘":
        assert sentences_of(f"好的！{mark}他走了。") == [f"好的！{mark}他走了。"]


_PAIRS = {"“": "”", "‘": "’", "「": "」", "『": "』", "《": "》", "〈": "〉", "（": "）", "(": ")"}
_PAIRS |= {"【": "】", "[": "]", "〔": "〕", '"': '"', "'": "'"}
_IN_WORD = re.compile(r"[\w&=/%#.+-]'[\w&=/%#.+-]", re.ASCII)
_LINE_END = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]+")


def mates(line):
    """The place of the other half of each bracket that has one."""
    found, opened = {}, []
    for at, mark in enumerate(line):
        if mark == "'" and _IN_WORD.match(line[max(at - 1, 0) : at + 2]):
            continue
        if mark in _PAIRS and not (mark in "'\"" and mark in [line[o] for o in opened]):
            opened.append(at)
        elif mark in _PAIRS.values() and mark in [_PAIRS[line[o]] for o in opened]:
            while _PAIRS[line[opened[-1]]] != mark:
                opened.pop()
            found |= {at: opened[-1], opened.pop(): at}
    return found


def is_end(line, at):
    """Whether the mark at a place ends a sentence if nothing else keeps it."""
    mark, rest = line[at], line[at + 1 :]
    if mark in "!?":
        return not re.match(r"[0-9A-Za-z_&=/%#.+-]", rest)
    if mark == "…":
        return line[at - 1 : at] != "…" and bool(re.match(r"…*([\s”’」』）】》\"']|$)", rest))
    return mark in "。！？"


def split_line(line):
    """The sentences of a line, character by character."""
    pairs, pieces, piece, ended, depth, began = mates(line), [], "", False, 0, 0
    for at, mark in enumerate(line):
        opens = pairs.get(at, -1) > at
        closes = not opens and mark in "”’」』）】》〉\")]〕'"
        end = is_end(line, at)
        if not (end or closes or mark.isspace() or line[max(at - 1, 0) : at + 1] == "……"):
            ended = ended and not (depth or mark in "，、；：,;:—的")
            if ended:
                pieces, piece, ended = [*pieces, piece], "", False
        began = at if not piece.strip() and not mark.isspace() else began
        piece += mark
        depth += opens - (pairs.get(at, at) < at)
        if pairs.get(at, at) < at and mark in "》〉）)】]〕":
            ended = ended and mark not in "》〉" and began == pairs[at]
        ended = ended or end
    return [*pieces, piece]


@given(st.text("他走。！？!?…”“『』〉《》（）\"'的，aZ1/= \n\u3000\x1c\u2028😀", max_size=40))
@settings(deadline=None, max_examples=500)
def test_splitting_is_what_a_plain_loop_says(text):
    """The kernel cuts where the loop does, with its space stripped."""
    pieces = [piece.strip() for line in _LINE_END.split(text) for piece in split_line(line)]
    assert sentences_of(text) == ([piece for piece in pieces if piece] or [text])


@given(st.text("他走。！？!?…”“『』〉《》（）\"'，：的aZ1/= ", max_size=40))
@settings(deadline=None, max_examples=300)
def test_splitting_loses_only_whitespace(text):
    """The pieces put together are the text without the whitespace at its cuts; none but the first
    begins with a comma or a closing mark."""
    pieces = sentences_of(text)
    assert not [piece for piece in pieces[1:] if piece[0] in "，：”』〉》）"]
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text)
    assert all(piece == piece.strip() for piece in pieces) or pieces == [text]


def test_split_rows_keep_their_place():
    """Every sentence of a paragraph carries the paragraph's row."""
    batch = sentences.split_texts(rows(["一。二。", "三。"]))
    assert batch.schema == ROW
    assert batch.column("row").to_pylist() == [1, 1, 2]
    whole = rows(["一。", "二。"])
    assert sentences.split_texts(whole) is whole


@given(st.text("张伟先生女士13800号路市在到住我叫@a.c/: -京AQ微信加护照", max_size=40))
@example("京A12345李女士zhang.wei@qq.com")  # a placeholder is another neighbour than the data
@settings(deadline=None)  # the first call compiles
def test_masking_is_stable(text):
    """The pre-check misses no row that a rule would change, and masking twice changes nothing."""
    once = privacy.mask_text(text)
    assert privacy.mask_column(pa.array([text])).to_pylist() == [once]
    assert privacy.mask_text(once) == once


@given(st.integers(10**14, 10**19 - 1))
@settings(deadline=None)  # the first call compiles
def test_luhn(number):
    """Exactly one last digit makes a number pass the card check."""
    stem = str(number)[:-1]
    passing = [d for d in range(10) if privacy.is_card(f"{stem}{d}")]
    assert len(passing) == (
        1 if len(set(stem)) > 1 or str(passing[:1]) not in stem else len(passing)
    )


@given(st.floats(0, 1), st.floats(0, 1), st.lists(st.integers(0, 2**64 - 1), max_size=30))
@settings(deadline=None)  # the first call compiles
def test_holdout_only_grows(low, high, values):
    """Whoever is held out at a small share is held out at a larger one; order plays no part."""
    low, high = sorted((low, high))
    ids = np.array(values, dtype=np.uint64)
    small, large = is_validation(ids, low), is_validation(ids, high)
    assert not (small & ~large).any()
    assert (is_validation(ids[::-1], high)[::-1] == large).all()


def test_holdout_takes_its_share():
    """Of 200,000 ids a tenth is held out, within five standard deviations; 0 and 1 are exact."""
    ids = np.array(
        [xxhash.xxh3_64_intdigest(str(n).encode()) for n in range(200_000)], dtype=np.uint64
    )
    assert abs(int(is_validation(ids, 0.1).sum()) - 20_000) < 5 * 135
    assert (
        abs(int(is_validation(np.arange(200_000, dtype=np.uint64), 0.1).sum()) - 20_000) < 5 * 135
    )
    assert not is_validation(ids, 0.0).any()
    assert is_validation(ids, 1.0).all()


ENDLESS = {
    "pauses": "…" * 100_000 + "x",
    "pauses and ends": "…。" * 50_000 + "x",
    "closing": "。" + "”" * 100_000 + "x",
    "hexadecimal": "deadbeef0123" * 20_000,
    "digits": "1234567890" * 20_000,
    "addresses": "www." * 50_000,
    "at signs": ("a" * 64 + "@" + "b" * 63) * 1_500,
    "house numbers": "在中山路1号" + "1号" * 100_000 + "线",
    "roads": "在" + "中山市" * 50_000,
    "joiners": "a\u200d" * 100_000,
    "joiners that join": "é" + "\u200d" * 100_000 + "é",
    "joiners and styles": "一" + "\u200d\ufe0f" * 100_000 + "二",
    "joiners and tags": "é" + "\u200d\U000e0041" * 100_000 + "一",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_line_takes_long(name):
    """Normalising, splitting and masking take time in proportion to a line, whatever is in it."""
    batch = rows([ENDLESS[name]])
    started = time.process_time()
    normalise(batch, 5, 512)
    privacy.mask_column(sentences.split_texts(batch).column("text"))
    assert time.process_time() - started < 5


# Characters of every kind that the normaliser tells apart, and plain ones.
TRICKY = (
    "中国𠀀〇豈のé\u0301\u0323e\uac00\u1100\u1161\u11a8 "
    "\t\n\u3000\xa0\u2003\u200b\ufeff\xad\u200d\u200c\u2060"
    "\x00\x1f\x7f\x85\x9f\ufffd\ufffc\ue000\U000f0000\U0010fffd\ufdd0\uffff\U0001ffff👨👩❤\ufe0f🏽ａ，。!aZ9"
    "\u212b\u2126\u0958\u09c7\u09be\U0001d15e\U000e0100\U00030000\u1b35"
)
TEXT = st.text(st.sampled_from(TRICKY) | st.characters(exclude_categories=["Cs"]), max_size=40)
ALL = (0, 10_000)  # fewest and most characters


def slow(text: str, least: int, most: int) -> str | None:
    """The rule in plain words: normalise, then look at the length; None: rejected."""
    found = normalise_text(text)
    if isinstance(found, Fault) or found == "":
        return None
    fits = least <= len(found) <= most
    return found if fits else None


LENGTHS = st.tuples(st.integers(0, 6), st.integers(6, 30))


@given(st.lists(TEXT, max_size=12).map(lambda texts: [*texts, *texts[:3]]), LENGTHS)
@settings(max_examples=300, deadline=None)
def test_the_fast_pass_equals_the_slow_rule(texts, lengths):
    """Kept sentences, ids and rejects are those of the plain rule, in order, none lost."""
    batch = rows(texts)
    found = normalise(batch, *lengths)
    assert found.batch.schema == LOCATED_SENTENCE
    assert found.rejected.schema == REJECTED_ROW
    expected = [(n, s) for n, t in enumerate(texts, 1) if (s := slow(t, *lengths)) is not None]
    kept = found.batch.to_pylist()
    assert [(row["row"], row["text"]) for row in kept] == expected
    for row in kept:
        assert row["id"] % 2**64 == xxhash.xxh3_64_intdigest(row["text"].encode())
    refused = found.rejected.to_pylist()
    assert sorted(r["row"] for r in kept + refused) == list(range(1, len(texts) + 1))
    assert [r["row"] for r in refused] == sorted(r["row"] for r in refused)


@given(TEXT)
@settings(max_examples=500, deadline=None)
def test_normal_form_is_stable(text):
    """Normalising twice changes nothing, the result is NFC and has single inner spaces."""
    found = normalise_text(text)
    if isinstance(found, Fault):
        return
    assert normalise_text(found) == found
    assert unicodedata.is_normalized("NFC", found)
    assert found == " ".join(part for part in found.split(" ") if part)


# Kelvin and semicolon become ASCII by NFC, ^ and marks compose, joiners depend on what they touch.
SIGNS = "Ω\u200d\u200c\u212a\u037ee\u0301\u0316他 \u2002\ufeff\u1161\u1100\ufe0f\u20e3🏴\U000e0041"
TRICKY = st.text(SIGNS, max_size=8)


@given(TRICKY)
@example("Ω\u200d\u212a")
@example("e\u200d\u0301")
@settings(max_examples=300, deadline=None)
def test_joiners_and_composition_settle(text):
    """The normal form is its own normal form where removing joiners and NFC feed each other."""
    form = normalise_text(text)
    assert not isinstance(form, Fault)
    assert normalise_text(form) == form


@given(st.lists(TEXT, min_size=1, max_size=10), st.integers(0, 5))
@settings(deadline=None)  # the first call compiles
def test_a_slice_gives_what_the_whole_gives(texts, start):
    """An array with an offset is read where it stands."""
    sliced = rows(texts).slice(min(start, len(texts)))
    copied = rows(texts[min(start, len(texts)) :])
    assert (
        normalise(sliced, *ALL)
        .batch.column("text")
        .equals(normalise(copied, *ALL).batch.column("text"))
    )


def test_every_code_point_takes_the_right_way():
    """A character that `normalise_text` changes or refuses is flagged; Han characters are not."""
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [f"a{chr(code)}b" for code in codes]
    lengths, slow = measure_texts(pa.array(texts))
    assert (lengths == 3).all()
    plain = [chr(code) for code, flag in zip(codes, slow.tolist(), strict=True) if not flag]
    for start in range(0, len(plain), 1000):
        joined = "a".join(["", *plain[start : start + 1000], ""])
        assert normalise_text(joined) == joined
    flagged = [code for code, flag in zip(codes, slow.tolist(), strict=True) if flag]
    assert not [code for code in flagged if 0x3400 <= code < 0xA000]  # Han takes the fast way
    assert sum(code < ch.TABLE_SIZE for code in flagged) < 13_000  # half of them private use


def test_no_pair_of_plain_characters_composes():
    """Two unflagged characters never merge in NFC: the second half of each is flagged."""
    classes = ch.classify_treatments()
    for code in range(ch.TABLE_SIZE):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            last = int(parts[1], 16)
            assert last >= ch.TABLE_SIZE or classes[last] == ch.SLOW


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ufeff他的病情\u200b已经好转。\xad", "他的病情已经好转。"),
        ("\u3000\u3000他 \t\n的\u2028病情", "他 的 病情"),
        ("e\u0301", "é"),
        ("👨\u200d👩\u200d👧和❤\ufe0f\u200d🔥", "👨\u200d👩\u200d👧和❤\ufe0f\u200d🔥"),
        ("中\u200d文\u200c", "中文"),
        ("\u200d\u200d开头", "开头"),
    ],
)
def test_examples(text, expected):
    """Invisible characters go, whitespace becomes one space, an emoji's joiner stays."""
    assert normalise_text(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("有\0零字符", "control_character"),
        ("有\x9f控制符", "control_character"),
        ("有\ufffd替换符", "replacement_character"),
        ("有\ue123私用字", "private_use"),
        ("有\U000f0001私用字", "private_use"),
        ("有\uffff非字符", "noncharacter"),
        ("", "empty"),
        ("\u200b \u3000", "empty"),
        ("太短了。", "too_short"),
        ("长" * 513, "too_long"),
    ],
)
def test_reasons(text, reason):
    """Each way to be no sentence has its reason; the text is kept as it came."""
    found = normalise(rows([text]), 5, 512)
    assert found.batch.num_rows == 0
    (row,) = found.rejected.to_pylist()
    assert (row["reason"], row["text"], row["file"], row["row"]) == (reason, text, "a.txt", 1)
    assert row["detail"]
