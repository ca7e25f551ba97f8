"""How characters are read, and which ones sound the same or nearly so."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from cecdata.hanzi.characters import frequency, is_han
from cecdata.hanzi.data import table
from cecdata.hanzi.syllables import confusion

# A reading rarer than this is known to few: it makes no homophone (的 read dī).
LEAST_SHARE = 0.02


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
    """All readings of a standard character, most frequent first; () for any other.

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
    """The readings with a share of at least `LEAST_SHARE`; never empty for a standard character."""
    return tuple(reading for reading in readings(character) if reading.share >= LEAST_SHARE)


def same_sound(left: str, right: str) -> bool:
    """Whether two characters share a common reading, tone included.

    >>> same_sound("教", "胶"), same_sound("已", "己")
    (True, False)
    """
    return sound_weight(left, right) > 0


def sound_weight(left: str, right: str) -> float:
    """The chance that both are read the same, each by its own shares: 0 to 1, symmetric."""
    shares = {str(reading): reading.share for reading in common_readings(left)}
    return sum(r.share * shares.get(str(r), 0.0) for r in common_readings(right))


def near_sound(left: str, right: str) -> str | None:
    """The confusion that links two characters which sound alike but not the same, or None.

    ``tone``, ``initial:zh/z``, ``final:an/ang``, ``edit1`` (one letter typed wrong, missing or
    too many), ``keyboard`` (that letter lies beside the right one). Over all common readings the
    likeliest pair decides, and the strongest kind where two are as likely.

    >>> near_sound("已", "己"), near_sound("是", "四"), near_sound("教", "胶")
    ('tone', 'initial:sh/s', None)
    """
    if left == right or same_sound(left, right):
        return None
    best: tuple[float, str] | None = None
    for one in common_readings(left):
        for other in common_readings(right):
            kind = confusion(one.syllable, other.syllable)
            weight = one.share * other.share
            if kind is not None and (best is None or weight > best[0]):
                best = (weight, kind)
    return best[1] if best else None


@cache
def _by_sound() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    for character in table("readings"):
        for reading in common_readings(character):
            found[str(reading)].append(character)
    return {sound: tuple(characters) for sound, characters in found.items()}


@cache
def _by_syllable() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for character in table("readings"):
        for reading in common_readings(character):
            found[reading.syllable][character] = None
    return {syllable: tuple(characters) for syllable, characters in found.items()}


@cache
def homophones(character: str) -> tuple[str, ...]:
    """Standard characters with the same sound and tone, likeliest first.

    Likely is what is frequent and mostly read so: 已 → 以, 椅, 蚁 before 佁.
    """
    found = {
        other
        for reading in common_readings(character)
        for other in _by_sound()[str(reading)]
        if other != character
    }
    weight = {other: sound_weight(character, other) * frequency(other) for other in found}
    return tuple(sorted(found, key=lambda other: (-weight[other], other)))


@cache
def near_homophones(character: str) -> tuple[tuple[str, str], ...]:
    """Standard characters that sound nearly the same, each with its confusion, by code point."""
    syllables = {
        near
        for reading in common_readings(character)
        for near in _near_syllables()[reading.syllable]
    }
    others = sorted({other for name in syllables for other in _by_syllable()[name]})
    linked = ((other, near_sound(character, other)) for other in others)
    return tuple((other, kind) for other, kind in linked if kind is not None)


@cache
def _near_syllables() -> dict[str, tuple[str, ...]]:
    """Syllable → those it may be confused with, itself (another tone) included."""
    known = tuple(_by_syllable())
    return {one: tuple(other for other in known if confusion(one, other)) for one in known}


def read_in_context(text: str) -> tuple[str, ...]:
    """For each code point its reading in this text (``hang2``); '' where it has none.

    >>> read_in_context("银行A")
    ('yin2', 'hang2', '')

    Needs pypinyin, which is loaded on the first call.
    """
    from pypinyin import Style, lazy_pinyin
    from pypinyin.constants import PINYIN_DICT

    found: list[str] = []
    for known, run in groupby(text, lambda sign: is_han(ord(sign)) and ord(sign) in PINYIN_DICT):
        signs = "".join(run)
        if known:
            found += lazy_pinyin(signs, style=Style.TONE3, neutral_tone_with_five=True)
        else:
            found += [""] * len(signs)
    return tuple(found)
