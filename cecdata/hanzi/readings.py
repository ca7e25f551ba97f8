"""The readings of characters, and the characters that sound the same or nearly so."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from cecdata.hanzi.characters import find_frequency, read_rows, read_table

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
def list_readings(character: str) -> tuple[Reading, ...]:
    """Return all readings of a standard character, most frequent first; () for any other.

    >>> [str(reading) for reading in list_readings("教")]
    ['jiao4', 'jiao1']
    """
    row = read_table("readings").get(character)
    if row is None:
        return ()
    entries = (entry.split(":") for entry in row[0].split(" "))
    return tuple(Reading(name[:-1], int(name[-1]), float(share)) for name, share in entries)


@cache
def common_readings(character: str) -> tuple[Reading, ...]:
    """Return the readings of at least the share `LEAST_SHARE`; a standard character has some."""
    return tuple(reading for reading in list_readings(character) if reading.share >= LEAST_SHARE)


def have_same_sound(left: str, right: str) -> bool:
    """Return whether two characters share a common reading, tone included."""
    return weigh_sound(left, right) > 0


def weigh_sound(left: str, right: str) -> float:
    """Return the probability that both are read the same, by their shares: 0 to 1, symmetric."""
    shares = {str(reading): reading.share for reading in common_readings(left)}
    return sum(r.share * shares.get(str(r), 0.0) for r in common_readings(right))


def link_sounds(left: str, right: str) -> str | None:
    """Return the confusion that links two characters which sound alike but not the same, or None.

    ``tone``, ``initial:zh/z``, ``final:an/ang``, ``keyboard`` (one letter typed beside the right
    one), ``edit1`` (one letter wrong, missing or too many). The likeliest pair of common readings
    decides; of equally likely ones, the kind named first here. The function is symmetric.

    >>> link_sounds("妈", "马"), link_sounds("是", "四"), link_sounds("教", "叫")
    ('tone', 'initial:sh/s', None)
    """
    if left == right or have_same_sound(left, right):
        return None
    links = [
        (reading.share * second_reading.share, kind)
        for reading in common_readings(left)
        for second_reading in common_readings(right)
        if (kind := find_confusion(reading.syllable, second_reading.syllable)) is not None
    ]
    return min(links, key=_rank_link)[1] if links else None


def _rank_link(link: tuple[float, str]) -> tuple[float, int, str]:
    """Return the key that sorts (weight, kind): heavy links first, then in the order of KINDS."""
    weight, kind = link
    return -weight, KINDS.index(kind.partition(":")[0]), kind


@cache
def _list_characters_by_sound() -> dict[str, tuple[str, ...]]:
    """Return the characters with each common reading, such as "hao3"."""
    by_sound: dict[str, list[str]] = defaultdict(list)
    for character in read_table("readings"):
        for reading in common_readings(character):
            by_sound[str(reading)].append(character)
    return {sound: tuple(characters) for sound, characters in by_sound.items()}


@cache
def list_homophones(character: str) -> tuple[str, ...]:
    """Return standard characters with the same sound and tone, likeliest first.

    A character is likely if it is frequent and mostly read so: 已 → 以, 椅, 蚁 before 佁.
    """
    others = {
        sibling
        for reading in common_readings(character)
        for sibling in _list_characters_by_sound()[str(reading)]
        if sibling != character
    }
    weight = {other: weigh_sound(character, other) * find_frequency(other) for other in others}
    return tuple(sorted(others, key=lambda other: (-weight[other], other)))


@cache
def list_similar_syllables() -> dict[str, dict[str, str]]:
    """Return syllable → syllable that it may be confused with → how."""
    near: dict[str, dict[str, str]] = defaultdict(dict)
    for one, similar, kind in read_rows("confusions"):
        near[one][similar] = kind
    return near


def find_confusion(left: str, right: str) -> str | None:
    """Return how two syllables without tone are confused, or None; the function is symmetric.

    >>> find_confusion("shi", "si"), find_confusion("lan", "lang"), find_confusion("ma", "ma")
    ('initial:sh/s', 'final:an/ang', 'tone')
    >>> find_confusion("nin", "min"), find_confusion("he", "hen"), find_confusion("bei", "tang")
    ('keyboard', 'edit1', None)
    """
    return list_similar_syllables().get(left, {}).get(right)
