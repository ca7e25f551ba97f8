"""Word vectors: a text is cut into its likeliest words, and words are compared by their topic."""

from __future__ import annotations

import numpy as np
import pytest

from cecdata.common.errors import InputError
from cecdata.lm.counting import Segmenter
from cecdata.lm.language_model import apply_change
from cecdata.lm.vectors import SHIPPED, Rows, WordVectors, load_shipped_vectors, load_vectors

WORDS = ("<unk>", "甲", "乙", "丙", "甲乙", "乙丙丁", "丁")
LOG_PROB = np.array([-12, -3, -3.5, -4, -5, -6, -3], np.float32)


def random_rows(seed: int) -> Rows:
    """Random vectors of the words; that of the unknown word is 0."""
    values = np.random.default_rng(seed).integers(-127, 127, (len(WORDS), 8)).astype(np.int8)
    values[0] = 0
    return Rows(values, np.linspace(0.01, 0.02, len(WORDS), dtype=np.float32)[:, None])


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, LOG_PROB, random_rows(1), random_rows(2))


def compare_slowly(text, change):
    """The definition, by another segmenter and vectors in full."""
    around, word = (rows.values * rows.scale for rows in (random_rows(1), random_rows(2)))
    before, after = (
        [*map(int, Segmenter(WORDS, -LOG_PROB.astype(float)).cut([one]))]
        for one in (text, apply_change(text, change))
    )
    common = []
    while before and after and before[0] == after[0]:
        common.append(before.pop(0))
        after.pop(0)
    while before and after and before[-1] == after[-1]:
        common.append(before.pop())
        after.pop()
    context = [number for number in common if number > 0]
    if not context:
        return 0.0
    topic = around[context].mean(axis=0)
    old, new = ([word[n] @ topic for n in side if n >= 0] for side in (before, after))
    return (np.mean(new) if new else 0.0) - (np.mean(old) if old else 0.0)


def test_topics_are_compared_by_the_words_that_a_change_leaves(vectors):
    """On random texts, changes of one and two characters, insertions and deletions."""
    draw = np.random.default_rng(3)
    for _ in range(200):
        text = "".join(draw.choice([*"甲乙丙丁戊，"], 12))
        start = int(draw.integers(0, 11))
        if "，" in text[start : start + 2]:
            continue
        changes = [
            (start, start + int(draw.integers(0, 3)), "".join(draw.choice([*"甲乙丙丁戊"], size)))
            for size in (1, 2)
        ]
        changes = [change for change in changes if "，" not in text[change[0] : change[1]]]
        expected = [pytest.approx(compare_slowly(text, change), abs=1e-3) for change in changes]
        assert vectors.compare_topics(text, changes) == expected, (text, changes)


def test_a_text_without_other_words_says_nothing(vectors):
    """Rare characters, too, are read by the channel."""
    assert vectors.compare_topics("䴙䴙", [(1, 2, "䴘"), (0, 2, "甲")]) == [0.0, 0.0]


def test_a_damaged_file_is_refused(tmp_path):
    """It says that the package is to be installed again."""
    path = tmp_path / "my.vectors"
    path.write_bytes(SHIPPED.read_bytes()[:-50])
    with pytest.raises(InputError, match="Reinstall the package"):
        load_vectors(path)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("医生给病人开了一张要方", (9, 10, "药")),
        ("被告人向人民法院提起上诉，法院改叛无罪", (16, 17, "判")),
    ],
)
def test_the_shipped_vectors_know_topics(text, change):
    """A word of the topic suits better than what is written, and not the other way round."""
    assert load_shipped_vectors().compare_topics(text, [change])[0] > 1
    right = apply_change(text, change)
    back = (change[0], change[1], text[change[0] : change[1]])
    assert load_shipped_vectors().compare_topics(right, [back])[0] < -1
