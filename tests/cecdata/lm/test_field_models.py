"""Models counted from text, the new words in it, and the mean of several models."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cecdata.common.errors import InputError
from cecdata.lm import ngrams
from cecdata.lm.counting import (
    Segmenter,
    count_words,
    find_words,
    fit_back_off,
    remove_words,
)
from cecdata.lm.interpolation import Mixture
from cecdata.lm.ngrams import NgramScorer, find_model, locate, read

TEXT = ["今天下雨", "今天下雨，明天下雪", "明天下雪"] * 2
WORDS = ("<unk>", "今天", "明天", "下", "雨", "雪", "下雪")
SHARES = np.array([1e-6, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1])


def model_of(text, words=WORDS, shares=SHARES, **least):
    counts = count_words(Segmenter(words, -np.log(shares)), len(words), [text])
    settings = {"name": "m", "licence": "cc0", "error": 3.0, **least}
    return fit_back_off(counts, words, shares / shares.sum(), **settings)


def test_pairs_are_counted_within_runs_of_han():
    """A pair of words counts as often as it stands in a run; a sign separates two runs."""
    made = model_of(TEXT)
    pairs = {(made.words[a], made.words[b]) for a, b in made.pairs}
    assert pairs == {("今天", "下"), ("下", "雨"), ("明天", "下雪")}


def test_blocks_add_up():
    """Sentences counted in blocks, in whatever order, give the model of all at once."""
    segmenter = Segmenter(WORDS, -np.log(SHARES))
    whole = count_words(segmenter, len(WORDS), [TEXT])
    parts = count_words(segmenter, len(WORDS), [TEXT[4:], [], TEXT[:4]])
    for name in ("pairs", "triples"):
        assert all(map(np.array_equal, getattr(whole, name), getattr(parts, name)))


def test_no_pair_below_the_floor():
    """A pair or triple that is rarer than the floor is not in the model."""
    once = "雪今天"
    pairs = {tuple(pair) for pair in model_of([*TEXT, once], least_pairs=2).pairs.tolist()}
    assert pairs == {tuple(pair) for pair in model_of(TEXT).pairs.tolist()}


def test_after_each_word_the_chances_sum_to_one():
    """P of all words after one, listed or by back-off, is a distribution."""
    made = model_of(TEXT)
    share = np.exp(made.word_log_prob)
    for word in range(1, len(WORDS)):
        listed = made.pairs[:, 0] == word
        rest = np.delete(share, made.pairs[listed, 1]).sum()
        total = np.exp(made.pair_log_prob[listed]).sum() + np.exp(made.word_backoff[word]) * rest
        assert total == pytest.approx(1.0, abs=1e-3)


def strings_of(text):
    counts, left, right = Counter(), {}, {}
    for sentence in text:
        for size in range(1, 7):
            for at in range(len(sentence) - size + 1):
                word = sentence[at : at + size]
                counts[word] += 1
                left.setdefault(word, Counter())[sentence[at - 1 : at]] += 1
                right.setdefault(word, Counter())[sentence[at + size : at + size + 1]] += 1
    return counts, left, right


def entropy(counter):
    shares = np.array(list(counter.values())) / counter.total()
    return -(shares * np.log(shares)).sum()


def test_new_words_are_those_of_a_slow_search():
    """A new word is frequent, bound however it is cut, and free on both sides."""
    rest = ["甲", "乙", "丙", "丁"]
    text = [f"{a}{word}{b}" for a in rest for b in rest for word in ("饕餮", "貔貅兽", "己亥")]
    text += [f"{a}饕" for a in rest]
    counts, left, right = strings_of(text)
    total = sum(map(len, text))
    expected = {
        word: count
        for word, count in counts.items()
        if len(word) > 1
        and count >= 3
        and min(
            np.log(count * total / (counts[word[:at]] * counts[word[at:]]))
            for at in range(1, len(word))
        )
        > 1.0
        and min(entropy(left[word]), entropy(right[word])) > 0.6
    }
    found = find_words(text, bound=1.0)
    assert found == expected
    assert {"饕餮", "貔貅兽", "己亥"} <= found.keys()
    assert "饕餮" not in find_words(text, {"饕餮"}, bound=1.0)


def test_mean_of_models():
    """The mean gives a text the mean of the models' chances, word by word, where both list it."""
    one, two = model_of(TEXT), model_of(TEXT[:2])
    both = Mixture([one, two]).make_model([0.25, 0.75], "both")
    by_pair = {
        tuple(pair): chance
        for pair, chance in zip(two.pairs.tolist(), two.pair_log_prob, strict=True)
    }
    for pair, chance, mean in zip(
        one.pairs.tolist(), one.pair_log_prob, both.pair_log_prob, strict=True
    ):
        other = by_pair.get(tuple(pair), two.word_backoff[pair[0]] + two.word_log_prob[pair[1]])
        assert np.exp(mean) == pytest.approx(0.25 * np.exp(chance) + 0.75 * np.exp(other), rel=0.1)


def test_mean_knows_the_words_of_all():
    """A word that one model lacks gets there the chance of its parts."""
    fewer = model_of(TEXT, WORDS[:-1], SHARES[:-1])
    both = Mixture([fewer, model_of(TEXT)]).make_model([1.0, 0.0], "both")
    number = both.words.index("下雪")
    parts = NgramScorer(fewer, "").log_prob(["下雪"])[0]
    assert both.word_log_prob[number] == pytest.approx(parts, abs=1e-3)


def test_share_follows_the_held_out_text():
    """A model has the greater share the likelier it makes the text that decides."""
    mixture = Mixture([model_of(["雪今天", "下雨"] * 3), model_of(TEXT)])
    assert mixture.share_of_last([1.0], TEXT) > 0.5 > mixture.share_of_last([1.0], ["雪今天"] * 3)
    assert mixture.share_of_last([1.0], ["没有"]) == 0.5


def test_default_is_the_mean_of_the_two_that_ship(monkeypatch):
    """The default model has the words of both; `words` is the first of them."""
    assert locate("words") == locate()[:1]
    models = []
    for model in map(read, locate()):
        others = [not word.startswith(("法", "<unk>")) for word in model.words]
        models.append(remove_words(model, np.array(others)))  # few are soon mixed
    assert models[1].licence == "LGPL-2.1-or-later"
    monkeypatch.setattr(ngrams, "read", dict(zip(locate(), models, strict=True)).__getitem__)
    found = find_model()
    assert set(found.words) == {word for model in models for word in model.words}
    of_open_texts, of_input_method, of_both = (
        np.exp(model.word_log_prob[model.words.index("法律")]) for model in (*models, found)
    )
    assert of_both == pytest.approx(0.3 * of_open_texts + 0.7 * of_input_method, rel=1e-5)


def test_field_joins_the_default(tmp_path, monkeypatch):
    """A table with a share is a field's: it is read as its mean with the default models."""
    path = tmp_path / "field.ngram"
    replace(model_of(TEXT), name="field", share=0.4).save(path)
    field = read(path)
    assert field.share == 0.4
    words = "法律", "医院", "雨"
    others = [model_of([word] * 3, ("<unk>", word), SHARES[:2]) for word in words[:2]]
    monkeypatch.setattr(ngrams, "load_default_models", lambda: others)
    found = find_model(path)
    assert found.name == "field"
    for word, model, share in zip(words, (*others, field), (0.18, 0.42, 0.4), strict=True):
        by_mean, by_model = (m.word_log_prob[m.words.index(word)] for m in (found, model))
        assert np.exp(by_mean) == pytest.approx(share * np.exp(by_model), rel=1e-2)


def test_damaged_table_is_refused(tmp_path):
    """A field's table that is cut short is an error, not a model."""
    path = tmp_path / "field.ngram"
    model_of(TEXT).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="damaged"):
        find_model(path)
