"""Idioms of which one character is wrong are corrected, and reduplications stay."""

from itertools import pairwise

import pytest

from cectrain.corrector.corrector import Corrector
from cectrain.corrector.idioms import find_idioms, shortens_reduplication

IDIOMS = ["不径而走", "滥芋充数", "竭泽而鱼", "饮鸠止渴", "兴高彩烈", "草管人命", "褒眨不一"]


@pytest.fixture(scope="module")
def corrector():
    return Corrector(lm="words")


@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_with_one_wrong_character_is_found(idiom):
    """Also where the lexicon has the misspelling, which is rarer there."""
    (change,) = find_idioms(f"他说{idiom}。")
    assert change[2] != idiom[change[0] - 2]


@pytest.mark.parametrize(
    "text",
    [
        "委员会副主任、俄罗斯驻华大使、计算机科学。",
        "二十三条、三十万元、同比增长、合法权益。",
        "名符其实，不胫而走，滥竽充数。",
    ],
)
def test_what_only_resembles_an_idiom_is_not_changed(text):
    """A word and what follows it, numbers, words of their own, and idioms as they are."""
    assert not list(find_idioms(text))


def test_what_is_found_is_judged_as_all_other_changes(corrector):
    """By the policy; a change that it confirms is made."""
    texts = ["这是不径而走的消息。", "他在里面滥芋充数。"]
    right = ["这是不胫而走的消息。", "他在里面滥竽充数。"]
    assert [one.target for one in corrector.correct(texts)] == right


@pytest.mark.parametrize(
    "text", ["蓊蓊郁郁的山林。", "小巷长长几何？", "他慢慢地走。", "绿油油的田野。"]
)
def test_reduplications_are_never_shortened(corrector, text):
    """AABB, AA and ABB; other characters that are written twice are corrected."""
    assert corrector.correct(text)[0].target == text
    for place, (character, after) in enumerate(pairwise(text)):
        if character == after:
            assert shortens_reduplication(text, place, place + 1, "")
    assert corrector.correct("我们们明天去。")[0].target == "我们明天去。"
