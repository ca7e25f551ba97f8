"""Word-level homophones: what a pinyin input method offers for a whole word (权利 → 权力)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.lexicon import LENGTHS, Words, words
from cecdata.hanzi.readings import FINAL_PAIRS, INITIAL_PAIRS, split_syllable, spoken
from cecdata.operators.base import Operator
from cecdata.operators.links import beside
from cecdata.operators.spans import SpanConfusions, SpanSet, span_set

KINDS = ("same_sound_word", "fuzzy_word", "part_of_word")
# Factors of a weight, besides the square root of the replacement's count.
FUZZY = 0.12  # for each syllable that dialects confuse, as for single characters
KEPT = 2.0  # for each unchanged character: a half-right word is easily overlooked
PART = 0.3  # for a part of a longer word, which is mostly typed and offered as a whole
OFFERED = 3  # words at the head of an input method's list that may be taken
LEAST_COUNT = 8  # rarer words are seldom typed, and seldom offered
LEAST = 0.02  # minimum share of a word's weight; rarer confusions are left out
Pair = tuple[str, str, float, int]


@cache
def _build() -> SpanSet:
    pairs = [pair for length in LENGTHS for pair in _whole(words(length))]
    pairs += [pair for length in LENGTHS[1:] for pair in _parts(words(length))]
    return span_set(pairs, LEAST)


def _whole(listed: Words) -> Iterator[Pair]:
    """Yield pairs of words that sound the same, or that dialects confuse."""
    common = np.flatnonzero(listed.counts >= LEAST_COUNT)
    loose = _loose()[listed.syllables[common]].astype(np.int64)
    left, right = beside(_keys(loose))
    left, right = common[left], common[right]
    far = (listed.syllables[left] != listed.syllables[right]).sum(axis=1)
    kept = (listed.characters[left] == listed.characters[right]).sum(axis=1)
    weight = np.power(FUZZY, far) * np.power(KEPT, kept) * np.sqrt(listed.counts[right])
    # drop the rare ones, which are most, before they become Python objects
    total = np.bincount(left, weight)
    held = weight >= LEAST * total[left]
    left, right, weight, far = left[held], right[held], weight[held], far[held]
    for one, other, share, fuzzy in zip(left, right, weight, far > 0, strict=True):
        yield listed.texts[one], listed.texts[other], float(share), int(fuzzy)


def _parts(listed: Words) -> Iterator[Pair]:
    """Yield longer words with a common word in place of two characters: 一不小心, 一部小心."""
    two = words(2)
    order = np.lexsort((-two.counts, _keys(two.syllables)))
    keys = _keys(two.syllables)[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    size = np.diff(np.r_[first, len(keys)])
    common = np.flatnonzero(listed.counts >= LEAST_COUNT)
    for start in range(listed.characters.shape[1] - 1):
        key = _keys(listed.syllables[common, start : start + 2])
        position = np.minimum(np.searchsorted(keys[first], key), len(first) - 1)
        for rank in range(OFFERED):
            held = np.flatnonzero((keys[first][position] == key) & (size[position] > rank))
            others = order[first[position[held]] + rank]
            right = listed.characters[common[held], start : start + 2]
            # exactly one of the two characters stays: a greater change would be noticed
            near = (right == two.characters[others]).sum(axis=1) == 1
            held, others = held[near], others[near]
            for word, other in zip(common[held].tolist(), others.tolist(), strict=True):
                text, part = listed.texts[word], two.texts[other]
                weight = PART * two.counts[other] ** 0.5
                yield text, text[:start] + part + text[start + 2 :], float(weight), 2


def _keys(syllables: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
    base = len(spoken().syllables)
    return syllables.astype(np.int64) @ (base ** np.arange(syllables.shape[1], dtype=np.int64))


@cache
def _loose() -> NDArray[np.int64]:
    """Return, for each syllable, the number of its class of syllables that dialects confuse."""
    names: dict[tuple[str, str], int] = {}
    initials = dict(INITIAL_PAIRS[:3]) | {"n": "l", "f": "h", "r": "l"}
    finals = {final: short for short, final in FINAL_PAIRS}
    classes = []
    for syllable in spoken().syllables:
        initial, final = split_syllable(syllable)
        form = initials.get(initial, initial), finals.get(final, final)
        classes.append(names.setdefault(form, len(names)))
    return np.array(classes, np.int64)


OPERATOR = Operator("word", "rewrite", 1, KINDS, SpanConfusions(KINDS, _build))
