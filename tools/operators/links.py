"""Pairs of characters of which one is written for the other, for all characters at once.

They sound the same or nearly so, are one component apart, or replace each other in words of the
same sound (权利 for 权力, 形式 for 形势).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sounds import Spoken, near_syllables, spoken, syllables

from cecdata.hanzi.characters import (
    LENGTHS,
    Words,
    find_frequency,
    list_words,
    make_slots,
    standard_characters,
)
from cecdata.hanzi.components import list_deletions, list_exchanges
from cecdata.operators.base import Positions, Weights

Keys = NDArray[np.int64]
_POSITION_BITS = 24  # of a position among the links, below a key of 27 bits


@dataclass(frozen=True, slots=True)
class Links:
    """P distinct pairs of characters as arrays, sorted by key = source · characters + other."""

    key: Keys
    weight: Weights
    kind: NDArray[np.int8]

    @property
    def source(self) -> Positions:
        """Return the positions of the right characters."""
        return (self.key // len(standard_characters())).astype(np.int32)

    @property
    def other(self) -> Positions:
        """Return the positions of the characters that are written by mistake."""
        return (self.key % len(standard_characters())).astype(np.int32)


class Confusions(NamedTuple):
    """Confusions as columns, by source and replacement; weights have seven digits."""

    source: Positions
    replacement: Positions
    weight: NDArray[np.float32]
    kind: NDArray[np.int8]


def likely(
    source: Positions, replacement: Positions, weight: Weights, kind: NDArray[np.int8], least: float
) -> Confusions:
    """Return the confusions of distinct pairs, without shares of a source's below `least`."""
    # rounded to seven digits, so that weights that should be equal are equal
    rounded = weight.astype(np.float32)
    total = np.bincount(source, rounded, len(standard_characters()))
    kept = np.flatnonzero((rounded > 0) & (rounded >= least * total[source]))
    order = kept[np.lexsort((replacement[kept], source[kept]))]
    return Confusions(source[order], replacement[order], rounded[order], kind[order])


def popularity(exponent: float) -> Weights:
    """Return the frequency of each standard character to that power, [characters]."""
    # Python's power and not numpy's, whose last digit depends on the processor
    return np.array([find_frequency(sign) ** exponent for sign in standard_characters()])


def sound_links(
    likeness: Mapping[str, float], kinds: Sequence[str], popular: Weights, least: float
) -> Links:
    """Return every pair with a common or confusable sound, and how readily it is typed.

    `likeness` is how readily a sound of each kind (`tone`, `initial` …) replaces the right one,
    relative to the same sound; `popular` [characters] is what else makes a replacement likely. A
    pair's weight is the sum of share · share · likeness · popular over the readings of both; the
    heaviest term gives the kind. A link below `least` times the weight of all sounds of the same
    syllable is left out.
    """
    sounds = spoken()
    heard = sounds.share * popular[sounds.character]
    parts = [
        _from_syllable(sounds, position, likeness, kinds, heard, least)
        for position in range(len(sounds.syllables))
        if sounds.bounds[position] < sounds.bounds[position + 1]
    ]
    key, weight, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    return merged(key, weight, kind)


def _from_syllable(
    sounds: Spoken,
    position: int,
    likeness: Mapping[str, float],
    kinds: Sequence[str],
    heard: Weights,
    least: float,
) -> tuple[Keys, Weights, NDArray[np.int8]]:
    """Return the links of all readings of one syllable to all readings of near syllables.

    `heard` [readings] is how likely each reading is as a replacement.
    """
    own = slice(int(sounds.bounds[position]), int(sounds.bounds[position + 1]))
    same, tone = kinds.index("same_sound"), kinds.index("tone")
    floor = least * likeness["tone"] * heard[own].sum()
    spans, strengths, names = [], [], []
    for syllable, how in near_syllables(sounds.syllables[position]):
        name = how.partition(":")[0]
        if likeness.get(name, 0.0) > 0:
            near = sounds.positions[syllable]
            span = np.arange(sounds.bounds[near], sounds.bounds[near + 1])
            spans.append(span)
            strengths.append(np.full(len(span), 1.0 if name == "tone" else likeness[name]))
            names.append(np.full(len(span), kinds.index(name), np.int8))
    span, strength, name_of = map(np.concatenate, (spans, strengths, names))
    kept = strength * heard[span] >= floor
    span, strength, name_of = span[kept], strength[kept], name_of[kept]
    tones = np.where(sounds.tone[own][:, None] == sounds.tone[span], 1.0, likeness["tone"])
    weight = sounds.share[own][:, None] * (strength * heard[span]) * tones
    alike = (name_of == tone) & (tones == 1.0)
    kind = np.where(alike, same, name_of).astype(np.int8)
    mine, other = sounds.character[own].astype(np.int64)[:, None], sounds.character[span]
    key = mine * len(standard_characters()) + other
    distinct = mine != other
    return key[distinct], weight[distinct], kind[distinct]


def merged(key: Keys, weight: Weights, kind: NDArray[np.int8]) -> Links:
    """Merge equal keys into one link, with the sum of the weights and the kind of the heaviest."""
    order = np.sort(key << _POSITION_BITS | np.arange(len(key))) & ((1 << _POSITION_BITS) - 1)
    key, weight, kind = key[order], weight[order], kind[order]
    new = np.r_[True, key[1:] != key[:-1]]
    first = np.flatnonzero(new)
    heaviest = np.maximum.reduceat(weight, first)[np.cumsum(new) - 1]
    of_heaviest = np.where(weight == heaviest, kind, np.int8(127))
    return Links(
        key[first], np.add.reduceat(weight, first), np.minimum.reduceat(of_heaviest, first)
    )


def looked_up(key: Keys, known: Keys, values: Weights) -> Weights:
    """Return the value of each key, 0 where there is none; `known` is sorted."""
    position = np.minimum(np.searchsorted(known, key), len(known) - 1)
    return np.where(known[position] == key, values[position], 0.0)


@cache
def one_part_apart() -> Links:
    """Return every pair once, with the first kind that explains it and weight 1."""
    count, slots = len(standard_characters()), make_slots()
    kind_of: dict[int, int] = {}
    signs = standard_characters()
    deletions = [(sign, other) for sign in signs for other in list_deletions(sign)]
    additions = [(other, sign) for sign, other in deletions]
    exchanges = [(sign, other) for sign in signs for other in list_exchanges(sign)]
    for kind, pairs in enumerate((deletions, additions, exchanges)):
        for sign, other in pairs:
            row, column = int(slots[ord(sign)]) - 1, int(slots[ord(other)]) - 1
            kind_of.setdefault(row * count + column, kind)
    keys = np.array(sorted(kind_of), np.int64)
    kinds = np.array([kind_of[int(key)] for key in keys], np.int8)
    return Links(keys, np.ones(len(keys)), kinds)


# People take the more frequent word by mistake, but less often than in proportion to its frequency.
COUNT_EXPONENT = 0.5
# Characters that hardly occur in words say little about what is written for them.
LEAST_OCCURRENCES = 50


@cache
def word_pairs() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (key = right · characters + wrong, sorted; its chance where a word has `right`).

    Each word is typed by its sound, and a word that the input method offers for that sound is taken
    with a probability in proportion to the square root of its count.
    """
    count = len(standard_characters())
    parts = [_of_length(list_words(length), syllables(length)) for length in LENGTHS]
    keys, inverse = np.unique(np.concatenate([key for key, _ in parts]), return_inverse=True)
    mass = np.bincount(inverse, np.concatenate([weight for _, weight in parts]))
    occurrences = np.full(count, 0.0)
    for length in LENGTHS:
        listed = list_words(length)
        each = np.repeat(listed.counts, length)
        occurrences += np.bincount(listed.characters.ravel(), each, count)
    return keys, mass / np.maximum(occurrences[keys // count], LEAST_OCCURRENCES)


def beside(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all ordered pairs of different members of one group, by group.

    >>> [positions.tolist() for positions in beside(np.array([7, 3, 7]))]
    [[0, 2], [2, 0]]
    """
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0])
    size = np.diff(np.r_[first, len(order)])
    # pair every member of a group of n with all n members
    times = np.repeat(size, size)
    left = np.repeat(np.arange(len(order)), times)
    begin = np.cumsum(times) - times
    right = np.repeat(first, size)[left] + np.arange(len(left)) - begin[left]
    different = left != right
    return order[left[different]], order[right[different]]


def totals(group: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each member, the sum of the weights of its group."""
    _, inverse = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(inverse, weight)[inverse], np.float64)


def _of_length(
    listed: Words, syllables: Positions
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    base = int(syllables.max()) + 1
    powers = base ** np.arange(syllables.shape[1], dtype=np.int64)
    sound = syllables.astype(np.int64) @ powers
    word, other = beside(sound)
    root = listed.counts**COUNT_EXPONENT
    share = root[other] / totals(sound, root)[other]
    right, wrong = listed.characters[word], listed.characters[other]
    mass = np.broadcast_to((listed.counts[word] * share)[:, None], right.shape)
    key = right.astype(np.int64) * len(standard_characters()) + wrong
    changed = right != wrong
    return key[changed], mass[changed]
