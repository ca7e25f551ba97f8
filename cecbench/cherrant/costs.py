"""What a substitution costs: the attributes of characters that the alignment looks at.

sub = sem + form + kind. sem is 4/6 where either character is not in Cilin, else (6 − 2d)/6 with d
equal levels of three; form is 0.5 unless both are Chinese and share a toneless reading (pypinyin)
or are listed as confusable; kind is 0 between two punctuation marks, 0.25 between none, 0.499
between one and none. Cilin and the confusion list are optional files: neither is shipped. Without
Cilin sem is 1, what Cilin gives to two characters that share no level, and 0 among 的地得: fewer
blocks differ so than with 4/6 (docs/scorers.md).
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError

#: The marks that ChERRANT knows: ASCII's and a list that circulates for Chinese text. It has no
#: ideographic full stop, no opening double angle bracket and no ．, and that shows in its edits.
PUNCTUATION = frozenset(
    string.punctuation
    + "！？｡＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    + "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏"
)
#: Without Cilin: the structural particles are of one class, as every thesaurus has them.
_PARTICLES: dict[str, int] = dict.fromkeys("的地得", 0)
_CILIN_LINE = re.compile(r"([A-Z])([a-z])(\d\d)\S*[=#@]\s+(.*)")
_NO_CLASS = -1

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """Files that make the alignment exactly ChERRANT's; None is without.

    cilin: lines such as `Aa01A01= 人 士 人物`. confusion: a character and then those it is confused
    with, one line each, separators free. UTF-8, or GBK as the published Cilin. As published, what
    a file says of a character last is what holds.
    """

    cilin: Path | None = None
    confusion: Path | None = None

    @property
    def name(self) -> str:
        """For the signature: what the costs know, files with the first digits of their SHA-256."""
        files = (f"{name}@{_digest(path)[:8]}" for name, path in self.files.items())
        return "+".join(["pinyin", *files])

    @property
    def files(self) -> dict[str, Path]:
        """The files that are given, by name."""
        both = (("cilin", self.cilin), ("confusion", self.confusion))
        return {name: path for name, path in both if path is not None}

    @property
    def details(self) -> dict[str, str]:
        """For a score: where the files lay, so that it can be made again."""
        return {f"{name}_file": str(path) for name, path in self.files.items()}


NO_DICTIONARIES = Dictionaries()


class Attributes(NamedTuple):
    """Characters by number, as the kernel reads them.

    marks: bit 0 punctuation, bit 1 Chinese; classes: three levels of one byte each, −1 without;
    shape (numbers,). readings: values of number i stand in [starts[i], starts[i + 1]).
    confusable: sorted first · 2³² + second. unknown: sem where either character has no class.
    """

    marks: NDArray[np.uint8]
    classes: Ints
    reading_starts: Ints
    readings: Ints
    confusable: NDArray[np.int64]
    unknown: float


class CharacterTable:
    """The numbers and attributes of the characters met so far.

    A new character costs time for its own entries alone, however long the dictionaries are: texts
    bring new characters a few at a time, so the attributes are read again and again.
    """

    def __init__(self, dictionaries: Dictionaries) -> None:
        self._cilin = _read_cilin(dictionaries.cilin) if dictionaries.cilin else _PARTICLES
        self._unknown = 4 / 6 if dictionaries.cilin else 1.0
        self._confused = _read_confusion(dictionaries.confusion) if dictionaries.confusion else {}
        self._numbers = np.full(0x110000, -1, dtype=np.int32)
        self._syllables: dict[str, int] = {}
        self._marks: list[int] = []
        self._classes: list[int] = []
        self._reading_starts = [0]
        self._readings: list[int] = []
        self._confusable = np.zeros(0, dtype=np.int64)
        self._attributes: Attributes | None = None

    def numbers(self, text: str) -> Ints:
        """Return one number per character of the text; equal numbers are equal characters."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        numbers: Ints = self._numbers[codes]
        if numbers.size and numbers.min() < 0:
            self._add(character for character in sorted(set(text)) if self._number(character) < 0)
            numbers = self._numbers[codes]
        return numbers

    def attributes(self) -> Attributes:
        """Return the attributes of every character met so far."""
        if self._attributes is None:
            self._attributes = Attributes(
                np.array(self._marks, dtype=np.uint8),
                np.array(self._classes, dtype=np.int32),
                np.array(self._reading_starts, dtype=np.int32),
                np.array(self._readings, dtype=np.int32),
                self._confusable,
                self._unknown,
            )
        return self._attributes

    def _number(self, character: str) -> int:
        return int(self._numbers[ord(character)])

    def _add(self, characters: Iterable[str]) -> None:
        """Give each of these new characters a number, and collect its attributes."""
        keys: set[int] = set()
        for character in characters:
            number = len(self._marks)
            self._numbers[ord(character)] = number
            chinese = is_chinese(character)
            self._marks.append((character in PUNCTUATION) + 2 * chinese)
            self._classes.append(self._cilin.get(character, _NO_CLASS))
            for syllable in _toneless(character) if chinese else ():
                self._readings.append(self._syllables.setdefault(syllable, len(self._syllables)))
            self._reading_starts.append(len(self._readings))
            for other in map(self._number, self._confused.get(character, ())):
                if other >= 0:
                    keys |= {(number << 32) + other, (other << 32) + number}
        if keys:
            new = np.fromiter(keys, dtype=np.int64, count=len(keys))
            self._confusable = np.sort(np.concatenate([self._confusable, new]))
        self._attributes = None


@cache
def character_table(dictionaries: Dictionaries) -> CharacterTable:
    """The table for these dictionaries, read once."""
    return CharacterTable(dictionaries)


def is_chinese(character: str) -> bool:
    """Whether the published scripts take a character for Chinese: the first block alone."""
    return "\u4e00" <= character <= "\u9fff"


def _toneless(character: str) -> tuple[str, ...]:
    from pypinyin import Style, pinyin

    return tuple(pinyin(character, style=Style.NORMAL, heteronym=True)[0])


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(_bytes(path)).hexdigest()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read as one of ChERRANT's dictionaries ({error.strerror})"
        ) from error


def _lines(path: Path, what: str) -> list[str]:
    raw = _bytes(path)
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return raw.decode(encoding).splitlines()
        except UnicodeDecodeError:
            continue
    raise InputError(f"{path}: the {what} is neither UTF-8 nor GBK; save it as UTF-8")


def _read_cilin(path: Path) -> dict[str, int]:
    """Character → its class, three levels of one byte each; of several the last, as published."""
    classes: dict[str, int] = {}
    for line in _lines(path, "Cilin"):
        match = _CILIN_LINE.match(line.strip())
        if match is None:
            continue
        high, middle, low, words = match.groups()
        code = (ord(high) << 16) + (ord(middle) << 8) + int(low)
        classes.update((word, code) for word in words.split() if len(word) == 1)
    if not classes:
        raise InputError(f"{path}: no line such as `Aa01A01= 人 士` was found; is this the Cilin?")
    return classes


def _read_confusion(path: Path) -> dict[str, set[str]]:
    """Return each character's confusable ones, in both directions.

    Of several lines that begin with a character the last one holds, as published.
    """
    lines: dict[str, list[str]] = {}
    for line in _lines(path, "confusion list"):
        characters = [c for c in line if is_chinese(c)]
        lines.update(dict.fromkeys(characters[:1], characters[1:]))
    confused: dict[str, set[str]] = {}
    for character, others in lines.items():
        for other in others:
            confused.setdefault(character, set()).add(other)
            confused.setdefault(other, set()).add(character)
    return confused
