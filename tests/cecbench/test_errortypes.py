"""Error types: what each category means, and that nothing is lost between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecbench import errortypes
from cecbench.errortypes import LEAVES, SENTENCE, errors_of, in_row, sentence_type
from cecdata.hanzi.edits import apply

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
