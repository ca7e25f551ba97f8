"""Idioms of which one character is wrong are corrected; reduplications and equal spellings stay."""

from itertools import pairwise

import pytest

from cectrain.corrector.channel.proposer import shortens_reduplication
from cectrain.corrector.corrector import Corrector


@pytest.fixture(scope="module")
def corrector():
    return Corrector(lm="words")


def test_a_word_is_completed_whatever_stands_in_its_place(corrector):
    """Idioms above all: three characters say what the fourth must be."""
    texts = ["这是不径而走的消息。", "他在里面滥芋充数。"]
    right = ["这是不胫而走的消息。", "他在里面滥竽充数。"]
    assert [one.target for one in corrector.correct(texts)] == right


@pytest.mark.parametrize(
    "text",
    [
        *("蓊蓊郁郁的山林。", "小巷长长几何？", "他慢慢地走。", "绿油油的田野。"),
        *("我教教他怎么骑车。", "把肉剁剁。", "炒炒菜。", "唱唱歌，跳跳舞。", "你煮煮吧。"),
    ],
)
def test_reduplications_are_never_shortened(corrector, text):
    """AABB, AA, ABB and verbs; function words that are written twice are corrected."""
    assert corrector.correct(text)[0].target == text
    for place, (character, after) in enumerate(pairwise(text)):
        if character == after:
            assert shortens_reduplication(text, place, place + 1, "")
    assert corrector.correct("我们们明天去。")[0].target == "我们明天去。"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("法院应当在七日内作出决定。", "作出"),
        ("请填写您的定单。", "定单"),
        ("人材难得。", "人材"),
        ("道路两旁绿树成阴。", "成阴"),
        ("他是惟一的证人。", "惟一"),
        ("患者鼻黏膜充血，有黏液。", "黏膜"),
        ("请您稍候，马上为您办理。", "稍候"),
    ],
)
def test_accepted_spellings_are_equals(corrector, text, word):
    """Neither of two spellings that dictionaries hold is an error."""
    assert corrector.correct(text)[0].target == text
    assert word in corrector.correct(text)[0].target


@pytest.mark.parametrize(
    "form", ["今晨{}时{}分，警方接到报案。", "患者于{}时{}分死亡。", "{0}是{0}，{1}是{1}。"]
)
def test_no_number_becomes_another(corrector, form):
    """时 and 是 between numerals are no 十, whose sound they have."""
    hours = [*"一二三四五六七八九十", "十二", "二十三"]
    texts = [form.format(hour, minute) for hour in hours for minute in hours]
    assert [one.target for one in corrector.correct(texts)] == texts


@pytest.mark.parametrize("text", ["他己經來了。", "證券交易所的電腦系統故障了。"])
def test_traditional_text_is_left_alone(corrector, text):
    """Simplified characters do not come into it where a fifth of a line cannot be read."""
    assert corrector.correct(text)[0].target == text
