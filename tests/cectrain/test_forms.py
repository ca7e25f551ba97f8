"""Traditional forms and variants within simplified text are corrected, elsewhere they stay."""

import pytest

from cectrain.corrector.corrector import Corrector


@pytest.fixture(scope="module")
def corrector():
    return Corrector("channel", lm="words")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("他昨天沒有来上班。", "他昨天没有来上班。"),
        ("我们後天去公园，他己经来了。", "我们后天去公园，他已经来了。"),
    ],
)
def test_a_form_is_corrected_and_the_model_reads_its_character(corrector, text, target):
    """Its edit quotes the form, and says that it is one; other errors are found as well."""
    (one,) = corrector.correct(text)
    assert one.target == target
    assert all(text[edit.start : edit.end] == edit.source for edit in one.edits)
    assert one.edits[0].confidence == 0.9
    assert one.edits[0].type == "form"


@pytest.mark.parametrize(
    "text",
    [
        "這個問題已經解決了，請大家放心。",  # traditional text
        "这家店叫“鼎泰豐”，那本书是《紅樓夢》。",  # names
        "他日前去了礼堂。",  # a compatibility form, which is another rule's
    ],
)
def test_other_forms_stay(corrector, text):
    """Text in traditional characters, what is quoted, compatibility forms."""
    assert corrector.correct(text)[0].target == text


def test_a_form_is_protected_and_needs_its_confidence():
    """Names of the user keep their forms; above 0.9 no form is corrected."""
    text = "王喆昨天沒有来上班。"
    for settings in ({"protect": ["沒有"]}, {"confidence": 0.95}):
        assert Corrector("channel", lm="words", **settings).correct(text)[0].target == text
