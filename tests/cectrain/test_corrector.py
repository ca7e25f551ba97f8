"""Whatever a model proposes, the rules of a corrector keep the rest of the text unharmed."""

import itertools
import random
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proposers import Silent

from cecdata.common.errors import CecError
from cecdata.common.progress import asking_whether_given_up
from cecdata.hanzi import errortypes
from cecdata.hanzi.characters import is_han
from cectrain.corrector.correction import Alternative, Edit, apply_edits
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.edit_guard import Plain, cut_pieces

TEXTS = st.lists(
    st.text("他己来了，。！、” \n\u3000a1R&%𠀀㻂😀\r\t\u200b\ufe0f\ufeff\u2f47\uf9b6", max_size=60),
    max_size=5,
)
UNREADABLE = "㻂😀\r\t"


class Proposer(Silent):
    """Proposes random edits over the whole of each piece."""

    unreadable = UNREADABLE

    def __init__(self, longest, rate=0.0, seed=0):
        self.longest = self.most = longest
        self._rate, self._random, self.asked = rate, random.Random(seed), []

    def propose(self, asked):
        self.asked += asked
        return [list(self._edits(piece)) for piece in asked]

    def _edits(self, piece):
        at = 0
        while at < len(piece):
            if self._random.random() < self._rate:
                end = at + self._random.randrange(3)
                target = "".join(self._random.choices("已经，,b", k=self._random.randrange(3)))
                yield Edit(
                    start=at,
                    end=min(end, len(piece)),
                    source=piece[at:end],
                    target=target,
                    confidence=0.5,
                )
                at = end
            at += 1


def without_han(text):
    return "".join(character for character in text if not is_han(ord(character)))


@given(TEXTS, st.integers(1, 12) | st.none())
def test_a_model_that_changes_nothing_changes_nothing(texts, longest):
    """Whatever the white space and the signs; no more is asked at once than the limit allows."""
    proposer = Proposer(longest)
    corrections = Corrector(proposer, confidence=1.0).correct(texts)  # above that of forms
    assert [one.target for one in corrections] == [one.source for one in corrections] == texts
    assert all(0 < len(piece) <= (longest or 60) for piece in proposer.asked)
    assert not {character for piece in proposer.asked for character in UNREADABLE} & set(
        "".join(proposer.asked)
    )


@given(TEXTS, st.integers(1, 12), st.integers(0, 2**32))
def test_only_readable_han_characters_change(texts, longest, seed):
    """Every other character comes back, in order; edits lead from source to target."""
    for one in Corrector(Proposer(longest, 0.2, seed)).correct(texts):
        assert without_han(one.target) == without_han(one.source)
        assert one.target.count("㻂") == one.source.count("㻂")
        assert apply_edits(one.source, one.edits) == one.target
        assert all(one.source[e.start : e.end] == e.source for e in one.edits)
        assert [e.start for e in one.edits] == sorted(e.start for e in one.edits)
        assert all(one.source[k.start : k.end] == k.source for k in one.kept)


@given(st.text("他己来了，,。！!、” \n\u30001", max_size=80), st.integers(1, 12))
def test_pieces_are_the_text(text, longest):
    """Nothing is lost or doubled; context comes before a piece, and both together fit."""
    cut = cut_pieces(text, longest)
    assert "".join(text[piece.start : piece.end] for piece in cut) == text
    for piece in cut:
        assert piece.context <= piece.start < piece.end
        fits = len(text[piece.context : piece.end].strip()) <= longest
        assert fits or piece.context == piece.start


def test_sentences_are_read_alone_and_clauses_with_context():
    """As in training, where a text is too long; a number keeps its comma."""

    def asked(text, longest):
        return [
            (text[p.context : p.start], text[p.start : p.end]) for p in cut_pieces(text, longest)
        ]

    assert asked("一二三。四", 6) == [("", "一二三。四")]
    assert asked("一二三。”四五……六七", 6) == [("", "一二三。”"), ("", "四五……"), ("", "六七")]
    assert asked("一，二，三四五，六七八九十。", 8) == [
        ("", "一，二，三四五，"),
        ("", "六七八九十。"),
    ]
    assert asked("一二三四五六，七，八九十一二三。", 10) == [
        ("", "一二三四五六，七，"),
        ("七，", "八九十一二三。"),
    ]
    assert asked("一二1,299元三四", 6) == [("", "一二1,299元三四")]


class Fixed(Proposer):
    """Proposes the same edits for each piece."""

    def __init__(self, *edits):
        super().__init__(None)
        self._fixed = edits

    def propose(self, asked):
        return [self._fixed for _ in asked]


def changed(text, count, target="的"):
    return [
        Edit(start=n, end=n + 1, source=text[n], target=target, confidence=0.9)
        for n in range(count)
    ]


FLOWERS = "我们明天去公园看花。"


@pytest.mark.parametrize(
    ("edits", "text", "target", "kept"),
    [
        # a protected name is neither changed nor parted
        (
            [
                Edit(start=0, end=1, source="习", target="西", confidence=0.9),
                Edit(start=4, end=5, source="己", target="已", confidence=0.9),
            ],
            "习小明自己经来了。",
            "习小明自已经来了。",
            [("习", "protected")],
        ),
        # signs stay, and nothing is put into a number or a link; beside Han it is
        (
            [Edit(start=1, end=2, source="&", target="", confidence=0.9)],
            "R&D部门",
            None,
            [("&", "not_han")],
        ),
        (
            [Edit(start=4, end=4, source="", target="的", confidence=0.9)],
            "涨了45.6%啊",
            None,
            [("", "not_han")],
        ),
        (
            [Edit(start=4, end=4, source="", target="的", confidence=0.9)],
            "他说的是话啊",
            "他说的是的话啊",
            [],
        ),
        # too many changes, or characters more or fewer
        (changed(FLOWERS, 4), FLOWERS, None, [(FLOWERS, "strayed")]),
        (
            [Edit(start=2, end=2, source="", target="的的的", confidence=0.9)],
            FLOWERS,
            None,
            [(FLOWERS, "strayed")],
        ),
        (
            [Edit(start=0, end=3, source="我们明", target="", confidence=0.9)],
            FLOWERS,
            None,
            [(FLOWERS, "strayed")],
        ),
        (changed(FLOWERS, 2), FLOWERS, "的的明天去公园看花。", []),
        # radicals, as text out of a PDF has them, are read as characters and reported
        (
            [
                Edit(start=2, end=3, source="己", target="已", confidence=0.9),
                Edit(start=0, end=1, source="日", target="曰", confidence=0.9),
            ],
            "\u2f47子己经\uf9b6了",
            "\u2f47子已经\uf9b6了",
            [("\u2f47", "form"), ("\uf9b6", "form")],
        ),
    ],
)
def test_an_edit_is_made_or_its_refusal_named(edits, text, target, kept):
    """Each rule that keeps a text unharmed; without a target the text comes back."""
    (one,) = Corrector(Fixed(*edits), protect=["习小明"]).correct(text)
    assert one.target == (target or text)
    assert [(each.source, each.reason) for each in one.kept] == kept


def test_the_last_character_may_be_missing():
    """At the end of a text as at that of a line."""
    corrector = Corrector(Fixed(Edit(start=4, end=4, source="", target="园", confidence=0.9)))
    for end in ("", " ", "\n", "\n\n"):
        assert corrector.correct(f"我们去公{end}")[0].target == f"我们去公园{end}"


def test_nothing_is_inserted_beside_an_unreadable_character():
    """The model has not read whether a character is missing there."""

    class Limited(Fixed):
        unreadable = "㻂"

    for place in (2, 3):
        (one,) = Corrector(
            Limited(Edit(start=place, end=place, source="", target="么", confidence=0.9))
        ).correct("会怎㻂呢？")
        assert one.target == "会怎㻂呢？"
    (one,) = Corrector(
        Limited(Edit(start=1, end=1, source="", target="么", confidence=0.9))
    ).correct("会怎㻂呢？")
    assert one.target == "会么怎㻂呢？"


def test_what_the_dictionary_replaces_is_not_kept():
    """Where the model strays from the rest of a sentence, the parts beside are named."""
    text = "明天童鞋去公园看花，童鞋。"
    corrector = Corrector(Fixed(*changed(text, 9)), dictionary={"童鞋": "同学"})
    (one,) = corrector.correct(text)
    assert one.target == "明天同学去公园看花，同学。"
    assert [(kept.source, kept.reason) for kept in one.kept] == [
        ("明天", "strayed"),
        ("去公园看花，", "strayed"),
        ("。", "strayed"),
    ]
    assert all(text[kept.start : kept.end] == kept.source for kept in one.kept)


def test_a_long_text_costs_what_its_pieces_cost():
    """The time of a document grows with its length, with names, replacements and forms, too."""
    sentences = [f"他己经来了第{n}次，你呢\u2f42？" for n in range(2000)]
    names = [f"习小{n}明" for n in range(100)]
    corrector = Corrector(Proposer(20, 0.1), protect=names, dictionary={"己经": "已经"})

    def seconds(texts):
        start = time.process_time()
        corrector.correct(texts)
        return time.process_time() - start

    whole = "".join(sentences)  # another try where a collection of garbage falls into it
    assert any(seconds([whole]) < 2 * seconds(sentences) for _ in range(3))


def test_every_invisible_character_is_left_out():
    """All that Unicode formats text with, except the signs that stand before Arabic numbers."""
    visible = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]")
    hieroglyphs = range(0x13430, 0x13440)
    shorthand = range(0x1BCA0, 0x1BCA4)
    for point in range(0x110000):
        if unicodedata.category(chr(point)) == "Cf" and point not in hieroglyphs:
            left_out = Plain.make(f"他{chr(point)}们").text == "他们"
            assert left_out != bool(visible.match(chr(point))), hex(point)
    assert all(Plain.make(f"他{chr(point)}们").text == "他们" for point in shorthand)
    for point in (0x34F, 0x180B, 0xFE0F, 0x3164, 0xE0100):
        assert Plain.make(f"他{chr(point)}们").text == "他们"


@pytest.mark.parametrize("between", ["\u200b", "\u00ad", "\ufeff", "\u2060\u200d", " ", "\u3000"])
def test_what_parts_a_word_is_read_over_and_put_back(between):
    """The model sees whole words; an edit keeps what stands between its characters."""
    proposer = Fixed(
        Edit(
            start=1,
            end=3,
            source="己径",
            target="已经",
            confidence=0.9,
            alternatives=(Alternative("己经", 0.1),),
        )
    )
    (one,) = Corrector(proposer).correct(f"他己{between}径来{between}了。")
    assert one.target == f"他已{between}经来{between}了。"
    assert one.edits[0].source == f"己{between}径"
    assert one.edits[0].alternatives[0].target == f"己{between}经"
    shorter = Fixed(Edit(start=1, end=3, source="己径", target="径", confidence=0.9))
    (one,) = Corrector(shorter).correct(f"他己{between}径来了。")
    assert one.target == f"他径{between}来了。"


@pytest.mark.parametrize("text", ["他 A 来", "第 1 章", "他  来", "他\n来", "他\t来"])
def test_other_white_space_parts(text):
    """Beside letters and digits, and where there is more than one."""
    assert Plain.make(text).text == text


@pytest.mark.parametrize("rule", ["", "term", "dictionary", "form"])
def test_every_edit_has_a_type(rule):
    """Of the one list that benchmarks and correctors share, whatever is replaced by what."""
    known = {*errortypes.LEAVES, "missing", "surplus", "word", "term", "dictionary", "form"}
    texts = ["", "己", "已经", "再见", "口天", "吴", "，", "经已"]
    for source, target in itertools.permutations(texts, 2):
        edit = Edit(
            start=0, end=len(source), source=source, target=target, confidence=0.5, rule=rule
        )
        assert edit.type in known


class InSimplified(Proposer):
    """Knows two errors of simplified text."""

    def propose(self, asked):
        return [
            [
                Edit(start=m.start(), end=m.end(), source=m[0], target="已经", confidence=0.9)
                for m in re.finditer("[己以]经", piece)
            ]
            for piece in asked
        ]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("他的病情己經好轉。", "他的病情已經好轉。"),
        ("他的病情己经好转。", "他的病情已经好转。"),
        (
            "他己\u200b經\ud83d把頭髮剪了，麵包也以經吃了。",
            "他已\u200b經\ud83d把頭髮剪了，麵包也已經吃了。",
        ),
        ("皇后的頭髮白了，裏面沒有錯。", "皇后的頭髮白了，裏面沒有錯。"),
    ],
)
def test_traditional_text_is_read_in_simplified_and_written_back(text, target):
    """Whatever is not changed stays as it was written; the script is found for each text."""
    pytest.importorskip("opencc")
    (one,) = Corrector(InSimplified(None), script="auto").correct(text)
    assert one.target == apply_edits(text, one.edits) == target
    assert all(text[edit.start : edit.end] == edit.source for edit in one.edits)


def test_what_cannot_be_written_back_is_left_and_named():
    """A target that becomes another character on its way back."""
    pytest.importorskip("opencc")
    (one,) = Corrector(
        Fixed(Edit(start=2, end=3, source="净", target="乾", confidence=0.9)), script="traditional"
    ).correct("擦乾淨")
    assert one.target == "擦乾淨"
    assert [(kept.source, kept.reason) for kept in one.kept] == [("淨", "script")]


def test_word_lists_hold_in_both_scripts():
    """A name or a replacement as it is written; a term as it is read."""
    pytest.importorskip("opencc")
    corrector = Corrector(
        InSimplified(None), script="auto", protect=["以經"], dictionary={"頭髮": "短髮"}
    )
    (one,) = corrector.correct("他己經來了，以經這個詞留著，頭髮換個說法。")
    assert one.target == "他已經來了，以經這個詞留著，短髮換個說法。"


def test_a_correction_that_nobody_waits_for_is_given_up():
    """Between two questions of a long text, too."""
    proposer = Proposer(6)
    answers = iter([False, False, True])
    with pytest.raises(CecError, match="cancelled"), asking_whether_given_up(lambda: next(answers)):
        Corrector(proposer).correct("他来了。" * 1000)
    assert 0 < len(proposer.asked) < 1000
