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
    """Gives characters numbers, and their attributes; grows as characters come."""

    def __init__(self, dictionaries: Dictionaries) -> None:
        self._cilin = _read_cilin(dictionaries.cilin) if dictionaries.cilin else _PARTICLES
        self._unknown = 4 / 6 if dictionaries.cilin else 1.0
        confusion = _read_confusion(dictionaries.confusion) if dictionaries.confusion else []
        self._pairs = confusion
        self._numbers = np.full(0x110000, -1, dtype=np.int32)
        self._characters: list[str] = []
        self._syllables: dict[str, int] = {}
        self._readings: list[list[int]] = []
        self._attributes: Attributes | None = None

    def numbers(self, text: str) -> Ints:
        """One number per character of the text; equal numbers are equal characters."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        found: Ints = self._numbers[codes]
        if found.size and found.min() < 0:
            self._add(sorted(set(text)))
            found = self._numbers[codes]
        return found

    def attributes(self) -> Attributes:
        """The attributes of every character met so far."""
        if self._attributes is None:
            self._attributes = self._build()
        return self._attributes

    def _add(self, characters: list[str]) -> None:
        for character in characters:
            if self._numbers[ord(character)] >= 0:
                continue
            self._numbers[ord(character)] = len(self._characters)
            self._characters.append(character)
            readings = _toneless(character) if is_chinese(character) else ()
            self._readings.append(
                [self._syllables.setdefault(text, len(self._syllables)) for text in readings]
            )
        self._attributes = None

    def _build(self) -> Attributes:
        marks = [(c in PUNCTUATION) + 2 * is_chinese(c) for c in self._characters]
        reading_starts, readings = _packed(self._readings)
        classes = [self._cilin.get(c, _NO_CLASS) for c in self._characters]
        pairs = [
            (int(self._numbers[ord(a)]) << 32) + int(self._numbers[ord(b)])
            for a, b in self._pairs
            if self._numbers[ord(a)] >= 0 and self._numbers[ord(b)] >= 0
        ]
        return Attributes(
            np.array(marks, dtype=np.uint8), np.array(classes, dtype=np.int32),
            reading_starts, readings, np.array(sorted(pairs), dtype=np.int64), self._unknown,
        )  # fmt: skip


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


def _packed(lists: list[list[int]]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum([len(values) for values in lists], out=starts[1:])
    return starts, np.array([value for values in lists for value in values], dtype=np.int32)


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


def _read_confusion(path: Path) -> list[tuple[str, str]]:
    """Pairs in both directions; a character's last line holds, as published."""
    listed: dict[str, list[str]] = {}
    for line in _lines(path, "confusion list"):
        found = [c for c in line if is_chinese(c)]
        listed.update(dict.fromkeys(found[:1], found[1:]))
    pairs = {(a, b) for a, others in listed.items() for b in others}
    return sorted(pairs | {(b, a) for a, b in pairs})
