from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cecdata.corpus import characters as ch
from cecdata.corpus.normalise import (
    LOCATED_SENTENCE,
    Fault,
    Options,
    normalise,
    normalise_text,
    scan,
)
from cecdata.corpus.rows import constant
from cecdata.shards.schema import REJECTED_ROW, ROW

# Characters of every kind that the normaliser tells apart, and plain ones.
TRICKY = (
    "中国𠀀〇豈のé\u0301\u0323e\uac00\u1100\u1161\u11a8 "
    "\t\n\u3000\xa0\u2003\u200b\ufeff\xad\u200d\u200c\u2060"
    "\x00\x1f\x7f\x85\x9f\ufffd\ufffc\ue000\U000f0000\U0010fffd\ufdd0\uffff\U0001ffff👨👩❤\ufe0f🏽ａ，。!aZ9"
    "\u212b\u2126\u0958\u09c7\u09be\U0001d15e\U000e0100\U00030000\u1b35"
)
TEXT = st.text(st.sampled_from(TRICKY) | st.characters(exclude_categories=["Cs"]), max_size=40)
ALL = Options(min_chars=0, max_chars=10_000)


def rows(texts) -> pa.RecordBatch:
    count = len(texts)
    arrays = [
        pa.array(texts, pa.string()),
        constant("网", count),
        constant("a.txt", count),
        pa.array(range(1, count + 1), pa.int64()),
        pa.nulls(count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)


def slow(text: str, options: Options) -> str | None:
    """The rule in plain words: normalise, then look at the length; None: rejected."""
    found = normalise_text(text)
    if isinstance(found, Fault) or found == "":
        return None
    fits = options.min_chars <= len(found) <= options.max_chars
    return found if fits else None


OPTIONS = st.builds(Options, st.integers(0, 6), st.integers(6, 30))


@given(st.lists(TEXT, max_size=12).map(lambda texts: [*texts, *texts[:3]]), OPTIONS)
@settings(max_examples=300, deadline=None)
def test_the_fast_pass_equals_the_slow_rule(texts, options):
    """Kept sentences, ids and rejects are those of the plain rule, in order, none lost."""
    batch = rows(texts)
    found = normalise(batch, options)
    assert found.batch.schema == LOCATED_SENTENCE
    assert found.rejected.schema == REJECTED_ROW
    expected = [(n, s) for n, t in enumerate(texts, 1) if (s := slow(t, options)) is not None]
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
TRICKY = st.text("Ω\u200d\u200c\u212a\u037ee\u0301\u0316他 \u2002\ufeff\u1161\u1100", max_size=8)


@given(TRICKY)
@example("Ω\u200d\u212a")
@example("e\u200d\u0301")
@settings(max_examples=1000, deadline=None)
def test_joiners_and_composition_settle(text):
    """The normal form is its own normal form where removing joiners and NFC feed each other."""
    form = normalise_text(text)
    assert not isinstance(form, Fault)
    assert normalise_text(form) == form


@given(st.text("a\u0301\u0316\u0f73\u0344\u0327\u1100\u1161", min_size=1100, max_size=1300))
@settings(max_examples=50, deadline=None)
def test_long_runs_of_marks_are_composed_as_short_ones(text):
    """A long text with many marks has the NFC that Python gives it."""
    assert normalise_text(text) == unicodedata.normalize("NFC", text)


@given(st.lists(TEXT, min_size=1, max_size=10), st.integers(0, 5))
@settings(deadline=None)  # the first call compiles
def test_a_slice_gives_what_the_whole_gives(texts, start):
    """An array with an offset is read where it stands."""
    sliced = rows(texts).slice(min(start, len(texts)))
    copied = rows(texts[min(start, len(texts)) :])
    assert (
        normalise(sliced, ALL)
        .batch.column("text")
        .equals(normalise(copied, ALL).batch.column("text"))
    )


def test_every_code_point_takes_the_right_way():
    """A character that `normalise_text` changes or refuses is flagged; Han characters are not."""
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [f"a{chr(code)}b" for code in codes]
    lengths, slow = scan(pa.array(texts))
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
    classes = ch.classes()
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
    found = normalise(rows([text]), Options())
    assert found.batch.num_rows == 0
    (row,) = found.rejected.to_pylist()
    assert (row["reason"], row["text"], row["file"], row["row"]) == (reason, text, "a.txt", 1)
    assert row["detail"]
