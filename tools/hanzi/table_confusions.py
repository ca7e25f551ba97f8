"""confusions.tsv: which syllables are taken for each other, and how."""

from __future__ import annotations

from functools import cache

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.readings import list_readings

HEADER = ["syllable", "other", "kind"]
INITIALS = ("zh", "ch", "sh", *"bpmfdtnlgkhjqxrzcsyw")  # the longer ones first
# Pairs that whole regions do not distinguish, the most common mistake first.
INITIAL_PAIRS = (("zh", "z"), ("ch", "c"), ("sh", "s"), ("n", "l"), ("h", "f"), ("r", "l"))
FINAL_PAIRS = (("an", "ang"), ("en", "eng"), ("in", "ing"), ("ian", "iang"), ("uan", "uang"))
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
VOWELS = frozenset("aeiouv")


def rows() -> list[list[str]]:
    """Return a row for each ordered pair; the table of readings is read."""
    every = (reading for sign in standard_characters() for reading in list_readings(sign))
    names = sorted({reading.syllable for reading in every})
    links = ((one, other, confusion(one, other)) for one in names for other in names)
    return [[one, other, kind] for one, other, kind in links if kind is not None]


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
        kind = named(initial, other_initial, INITIAL_PAIRS, "initial")
        if kind is not None:
            return kind
    if initial == other_initial:
        kind = named(final, other_final, FINAL_PAIRS, "final")
        if kind is not None:
            return kind
    return typed(left, right)


def named(left: str, right: str, pairs: tuple[tuple[str, str], ...], what: str) -> str | None:
    for pair in pairs:
        if {left, right} == set(pair):
            return f"{what}:{pair[0]}/{pair[1]}"
    return None


def typed(left: str, right: str) -> str | None:
    """Return the kind of a slip of one letter, or None; each needs two letters and a vowel."""
    if min(len(left), len(right)) < 2 or not (VOWELS & set(left) and VOWELS & set(right)):
        return None
    if len(left) == len(right):
        wrong = [position for position in range(len(left)) if left[position] != right[position]]
        if len(wrong) != 1:
            return None
        keys = neighbours().get(left[wrong[0]], frozenset())
        return "keyboard" if right[wrong[0]] in keys else "edit1"
    short, long = sorted((left, right), key=len)
    skipped = (long[:position] + long[position + 1 :] for position in range(len(long)))
    return "edit1" if short in skipped else None


@cache
def neighbours() -> dict[str, frozenset[str]]:
    """Return letter → letters beside it on a QWERTY keyboard, its rows offset by half a key."""
    positions = {
        key: (row, 2 * column + row)
        for row, keys in enumerate(KEY_ROWS)
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


@cache
def split_syllable(syllable: str) -> tuple[str, str]:
    """Return the initial (y and w counted as such, '' if there is none) and final.

    >>> split_syllable("zhuang"), split_syllable("an"), split_syllable("ng")
    (('zh', 'uang'), ('', 'an'), ('', 'ng'))
    """
    if not VOWELS & set(syllable):
        return "", syllable  # 嗯 ng, 呣 m: a nasal alone is the final
    for initial in INITIALS:
        if syllable.startswith(initial):
            return initial, syllable[len(initial) :]
    return "", syllable
