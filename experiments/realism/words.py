"""Words and pairs of characters in a text: its segmentation, and how well its parts fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from cecdata.hanzi.characters import LENGTHS, find_frequency, list_words, standard_characters
from cecdata.lm.ngrams import load_shipped
from experiments.realism.characters import shipped_pairs

NEVER = -2.0  # the fit of a pair of characters that does not occur
UNKNOWN = -20.0  # log P of a word that a model lacks
_SINGLE = 0.2  # share of running text that is words of one character, roughly


def cut(text: str) -> tuple[str, ...]:
    """Cut a text into the likeliest words of the lexicon and single characters."""
    return _likeliest(text, lexicon)


@cache
def _likeliest(text: str, listed: Callable[[], dict[str, float]]) -> tuple[str, ...]:
    known = listed()
    best, size = [0.0], [0]
    for end in range(1, len(text) + 1):
        options = [(best[end - 1] + known.get(text[end - 1], UNKNOWN), 1)]
        for longer in range(2, min(max(LENGTHS), end) + 1):
            here = known.get(text[end - longer : end])
            if here is not None:
                options.append((best[end - longer] + here, longer))
        top, length = max(options)
        best.append(top)
        size.append(length)
    chosen, at = [], len(text)
    while at:
        chosen.append(text[at - size[at] : at])
        at -= size[at]
    return tuple(chosen[::-1])


@cache
def score(text: str) -> float:
    """Return the log-probability of a text's words under the bigram model of the package."""
    model, (number, bounds) = load_shipped(), _index()
    total, last = 0.0, 0
    for word in _likeliest(text, _of_model):
        this = number.get(word, 0)
        start, end = bounds[last], bounds[last + 1]
        place = start + int(np.searchsorted(model.pairs[start:end, 1], this))
        if place < end and model.pairs[place, 1] == this:
            total += float(model.pair_log_prob[place])
        else:
            total += float(model.word_backoff[last]) + float(model.word_log_prob[this])
        last = this
    return total


@cache
def fit(left: str, right: str) -> float:
    """Return the pointwise mutual information of two neighbouring characters, or NEVER."""
    keys, joint, single = shipped_pairs()
    key = ord(left) << 21 | ord(right)
    place = int(np.searchsorted(keys, key))
    if place == len(keys) or keys[place] != key:
        return NEVER
    chance = single[ord(left)] * single[ord(right)] / single.sum()
    return max(float(np.log(joint[place] / chance)), NEVER + 1e-3)


@cache
def lexicon() -> dict[str, float]:
    """Return log P of the words of two to four characters, and of single characters."""
    counts = {
        text: count
        for length in LENGTHS
        for text, count in zip(
            list_words(length).texts, list_words(length).counts.tolist(), strict=True
        )
    }
    total = sum(counts.values()) / (1 - _SINGLE)
    return {
        **{text: float(np.log(count / total)) for text, count in counts.items()},
        **{s: float(np.log(_SINGLE * find_frequency(s) / 1e6)) for s in standard_characters()},
    }


@cache
def _of_model() -> dict[str, float]:
    model = load_shipped()
    return dict(zip(model.words[1:], model.word_log_prob[1:].tolist(), strict=True))


@cache
def _index() -> tuple[dict[str, int], list[int]]:
    """Return the number of each word, and where the sorted pairs of each number begin."""
    model = load_shipped()
    number = {word: place for place, word in enumerate(model.words)}
    return number, np.searchsorted(model.pairs[:, 0], np.arange(len(number) + 1)).tolist()
