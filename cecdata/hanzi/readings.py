"""The readings of characters, and the characters that sound the same or nearly so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import frequency, standard_characters, table

INITIALS = ("zh", "ch", "sh", *"bpmfdtnlgkhjqxrzcsyw")  # the longer ones first
# Pairs that whole regions do not distinguish, the most common mistake first.
INITIAL_PAIRS = (("zh", "z"), ("ch", "c"), ("sh", "s"), ("n", "l"), ("h", "f"), ("r", "l"))
FINAL_PAIRS = (("an", "ang"), ("en", "eng"), ("in", "ing"), ("ian", "iang"), ("uan", "uang"))
_KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_VOWELS = frozenset("aeiouv")
# A rarer reading is known to few people, and so makes no homophone (的 read dī).
LEAST_SHARE = 0.02
# The kinds of links between two sounds, the easiest mistake first.
KINDS = ("tone", "initial", "final", "keyboard", "edit1")


@dataclass(frozen=True, slots=True)
class Reading:
    """A syllable (ü as v), its tone 1–4 or 5 for neutral, the share of occurrences read so."""

    syllable: str
    tone: int
    share: float

    def __str__(self) -> str:
        return f"{self.syllable}{self.tone}"


@cache
def readings(character: str) -> tuple[Reading, ...]:
    """Return all readings of a standard character, most frequent first; () for any other.

    >>> [str(reading) for reading in readings("教")]
    ['jiao4', 'jiao1']
    """
    row = table("readings").get(character)
    if row is None:
        return ()
    entries = (entry.split(":") for entry in row[0].split(" "))
    return tuple(Reading(name[:-1], int(name[-1]), float(share)) for name, share in entries)


@cache
def common_readings(character: str) -> tuple[Reading, ...]:
    """Return the readings of at least the share `LEAST_SHARE`; a standard character has some."""
    return tuple(reading for reading in readings(character) if reading.share >= LEAST_SHARE)


def same_sound(left: str, right: str) -> bool:
    """Return whether two characters share a common reading, tone included.

    >>> same_sound("教", "胶"), same_sound("已", "己")
    (True, False)
    """
    return sound_weight(left, right) > 0


def sound_weight(left: str, right: str) -> float:
    """Return the probability that both are read the same, by their shares: 0 to 1, symmetric."""
    shares = {str(reading): reading.share for reading in common_readings(left)}
    return sum(r.share * shares.get(str(r), 0.0) for r in common_readings(right))


def near_sound(left: str, right: str) -> str | None:
    """Return the confusion that links two characters which sound alike but not the same, or None.

    ``tone``, ``initial:zh/z``, ``final:an/ang``, ``keyboard`` (one letter typed beside the right
    one), ``edit1`` (one letter wrong, missing or too many). The likeliest pair of common readings
    decides; of equally likely ones, the kind named first here. The function is symmetric.

    >>> near_sound("妈", "马"), near_sound("是", "四"), near_sound("教", "叫")
    ('tone', 'initial:sh/s', None)
    """
    if left == right or same_sound(left, right):
        return None
    links = [
        (one.share * other.share, kind)
        for one in common_readings(left)
        for other in common_readings(right)
        if (kind := confusion(one.syllable, other.syllable)) is not None
    ]
    return min(links, key=_likeliest)[1] if links else None


def _likeliest(link: tuple[float, str]) -> tuple[float, int, str]:
    weight, kind = link
    return -weight, KINDS.index(kind.partition(":")[0]), kind


@cache
def _by_sound() -> dict[str, tuple[str, ...]]:
    by_sound: dict[str, list[str]] = defaultdict(list)
    for character in table("readings"):
        for reading in common_readings(character):
            by_sound[str(reading)].append(character)
    return {sound: tuple(characters) for sound, characters in by_sound.items()}


@cache
def _by_syllable() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return syllable → (character, share) for every common reading of it, of any tone."""
    by_syllable: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for character in table("readings"):
        for reading in common_readings(character):
            by_syllable[reading.syllable].append((character, reading.share))
    return {syllable: tuple(entries) for syllable, entries in by_syllable.items()}


@cache
def homophones(character: str) -> tuple[str, ...]:
    """Return standard characters with the same sound and tone, likeliest first.

    A character is likely if it is frequent and mostly read so: 已 → 以, 椅, 蚁 before 佁.
    """
    others = {
        other
        for reading in common_readings(character)
        for other in _by_sound()[str(reading)]
        if other != character
    }
    weight = {other: sound_weight(character, other) * frequency(other) for other in others}
    return tuple(sorted(others, key=lambda other: (-weight[other], other)))


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
    every = (reading for sign in standard_characters() for reading in readings(sign))
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
            [position[readings(sign)[0].syllable] for sign in standard_characters()], np.int32
        ),
    )


@cache
def near_syllables(syllable: str) -> tuple[tuple[str, str], ...]:
    """Return the syllables that this one may be confused with, and how; its other tones first.

    >>> near_syllables("si")[:2]
    (('si', 'tone'), ('ai', 'keyboard'))
    """
    return tuple(sorted(_near_syllables()[syllable], key=lambda link: link[0] != syllable))


@cache
def _near_syllables() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return syllable → (syllable it may be confused with, kind), its own other tones included."""
    near: dict[str, list[tuple[str, str]]] = {}
    by_form: dict[str, list[str]] = defaultdict(list)
    for name in _by_syllable():
        for form in _loose_forms(name):
            by_form[form].append(name)
    for one in _by_syllable():
        others = dict.fromkeys(name for form in _loose_forms(one) for name in by_form[form])
        links = ((other, confusion(one, other)) for other in others)
        near[one] = [(other, kind) for other, kind in links if kind is not None]
    return {one: tuple(sorted(others)) for one, others in near.items()}


def _loose_forms(syllable: str) -> set[str]:
    """Return forms that syllables linked by `confusion` share: without a letter, or fuzzy."""
    positions = range(len(syllable))
    initial, final = split_syllable(syllable)
    fuzzy_initials = {f"{'/'.join(pair)}-{final}" for pair in INITIAL_PAIRS if initial in pair}
    fuzzy_finals = {f"{initial}-{'/'.join(pair)}" for pair in FINAL_PAIRS if final in pair}
    return (
        {syllable}
        | {f"{syllable[:position]}?{syllable[position + 1 :]}" for position in positions}
        | {f"{syllable[:position]}{syllable[position + 1 :]}+" for position in positions}
        | {f"{syllable}+"}
        | fuzzy_initials
        | fuzzy_finals
    )


@cache
def split_syllable(syllable: str) -> tuple[str, str]:
    """Return the initial (y and w counted as such, '' if there is none) and final.

    >>> split_syllable("zhuang"), split_syllable("an"), split_syllable("ng")
    (('zh', 'uang'), ('', 'an'), ('', 'ng'))
    """
    if not _VOWELS & set(syllable):
        return "", syllable  # 嗯 ng, 呣 m: a nasal alone is the final
    for initial in INITIALS:
        if syllable.startswith(initial):
            return initial, syllable[len(initial) :]
    return "", syllable


@cache
def confusion(left: str, right: str) -> str | None:
    """Return how two syllables without tone are confused, or None; the function is symmetric.

    >>> confusion("shi", "si"), confusion("lan", "lang"), confusion("ma", "ma")
    ('initial:sh/s', 'final:an/ang', 'tone')
    >>> confusion("nin", "min"), confusion("he", "hen"), confusion("bei", "tang")
    ('keyboard', 'edit1', None)
    """
    if left == right:
        return "tone"
    (initial, final), (other_initial, other_final) = split_syllable(left), split_syllable(right)
    if final == other_final:
        kind = _named(initial, other_initial, INITIAL_PAIRS, "initial")
        if kind is not None:
            return kind
    if initial == other_initial:
        kind = _named(final, other_final, FINAL_PAIRS, "final")
        if kind is not None:
            return kind
    return _typed(left, right)


def _named(left: str, right: str, pairs: tuple[tuple[str, str], ...], what: str) -> str | None:
    for pair in pairs:
        if {left, right} == set(pair):
            return f"{what}:{pair[0]}/{pair[1]}"
    return None


def _typed(left: str, right: str) -> str | None:
    """Return the kind of a slip of one letter, or None; each needs two letters and a vowel."""
    if min(len(left), len(right)) < 2 or not (_VOWELS & set(left) and _VOWELS & set(right)):
        return None
    if len(left) == len(right):
        wrong = [position for position in range(len(left)) if left[position] != right[position]]
        if len(wrong) != 1:
            return None
        keys = _neighbours().get(left[wrong[0]], frozenset())
        return "keyboard" if right[wrong[0]] in keys else "edit1"
    short, long = sorted((left, right), key=len)
    skipped = (long[:position] + long[position + 1 :] for position in range(len(long)))
    return "edit1" if short in skipped else None


@cache
def _neighbours() -> dict[str, frozenset[str]]:
    """Return letter → letters beside it on a QWERTY keyboard, its rows offset by half a key."""
    positions = {
        key: (row, 2 * column + row)
        for row, keys in enumerate(_KEY_ROWS)
        for column, key in enumerate(keys)
    }
    return {
        key: frozenset(
            other
            for other, (row, column) in positions.items()
            if other != key
            and abs(row - at[0]) <= 1
            and abs(column - at[1]) <= 2 - abs(row - at[0])
        )
        for key, at in positions.items()
    }
