"""Readings of all characters and words as arrays, for confusions by sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import list_words, read_rows, standard_characters
from cecdata.hanzi.readings import common_readings, list_readings, list_similar_syllables


@dataclass(frozen=True, slots=True)
class Spoken:
    """All common readings as arrays: E of them, by syllable, then by character.

    `character` [E] are positions in `standard_characters()`, `bounds` [syllables + 1] where each
    syllable's readings begin, `usual` [characters] the position of the most frequent syllable.
    """

    syllables: tuple[str, ...]
    positions: Mapping[str, int]  # of the syllables
    bounds: NDArray[np.int64]
    character: NDArray[np.int32]
    tone: NDArray[np.int8]
    share: NDArray[np.float64]
    usual: NDArray[np.int32]


@cache
def spoken() -> Spoken:
    """Return every common reading of every standard character."""
    every = (reading for sign in standard_characters() for reading in list_readings(sign))
    names = sorted({reading.syllable for reading in every})
    position = {name: number for number, name in enumerate(names)}
    entries = sorted(
        (position[reading.syllable], number, reading.tone, reading.share)
        for number, sign in enumerate(standard_characters())
        for reading in common_readings(sign)
    )
    syllable = [entry[0] for entry in entries]
    return Spoken(
        syllables=tuple(names),
        positions=position,
        bounds=np.searchsorted(syllable, np.arange(len(names) + 1)),
        character=np.array([entry[1] for entry in entries], np.int32),
        tone=np.array([entry[2] for entry in entries], np.int8),
        share=np.array([entry[3] for entry in entries]),
        usual=np.array(
            [position[list_readings(sign)[0].syllable] for sign in standard_characters()], np.int32
        ),
    )


@cache
def near_syllables(syllable: str) -> tuple[tuple[str, str], ...]:
    """Return the syllables that this one may be confused with, and how; its other tones first.

    >>> near_syllables("si")[:2]
    (('si', 'tone'), ('ai', 'keyboard'))
    """
    near = list_similar_syllables()[syllable]
    return tuple(sorted(near.items(), key=lambda link: (link[0] != syllable, link)))


@cache
def syllables(length: int) -> NDArray[np.int32]:
    """Return [words, length] the positions in `spoken().syllables` of `list_words(length)`."""
    sounds = spoken()
    found = sounds.usual[list_words(length).characters]
    held = (row for row in read_rows("lexicon") if len(row[0]) == length)
    for position, (_, _, reading) in enumerate(held):
        if reading:
            found[position] = [sounds.positions[name] for name in reading.split(" ")]
    return found
