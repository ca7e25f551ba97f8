"""The characters of a text as ChERRANT takes them, and the costs of substitutions.

A substitution costs sem + form + kind. sem is (6 − 2d)/6, where d of the three levels of the
characters' classes in Cilin are equal, or 4/6 if either character has no class. form is 0 if both
are Chinese and share a toneless reading (pypinyin) or are listed as confusable, else 0.5. kind is
0 for two punctuation marks, 0.25 for none, 0.499 for one.

Cilin and the confusion list are optional files that are not shipped. Without Cilin, sem is 0
among 的地得 and 1 otherwise: fewer published blocks differ with 1 than with 4/6
(docs/reference/scorers.md).
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError, how_to_install


@cache
def _load_converter() -> Callable[[str], str]:
    """Return OpenCC's conversion of traditional to simplified characters, loaded once."""
    try:
        import opencc
    except ImportError as error:
        raise InputError(
            "the scorer cherrant needs OpenCC, which is not installed: "
            f"{how_to_install('bench')}, or use --mode nosimp"
        ) from error
    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert


def read_opencc_version() -> str:
    """Return the version of the installed OpenCC, which results depend on."""
    _load_converter()
    return version("opencc")


def simplify(texts: Sequence[str]) -> list[str]:
    """Return the texts with traditional characters simplified (OpenCC t2s)."""
    return list(map(_load_converter(), texts))


def remove_whitespace(text: str) -> str:
    """Return the text without whitespace, including no-break and ideographic spaces."""
    return "".join(text.split())


#: The marks that ChERRANT knows: those of ASCII and a common list for Chinese text. It lacks the
#: ideographic full stop, the opening double angle bracket and ．, which shows in its edits.
PUNCTUATION = frozenset(
    string.punctuation
    + "！？｡＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    + "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏"
)
#: Without Cilin the structural particles share a class, as in every thesaurus.
_PARTICLES: dict[str, int] = dict.fromkeys("的地得", 0)
_CILIN_LINE = re.compile(r"([A-Z])([a-z])(\d\d)\S*[=#@]\s+(.*)")
_NO_CLASS = -1
_CODES, _CHINESE = 0x110000, range(0x4E00, 0xA000)

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """Optional files that bring the alignment closer to ChERRANT's.

    cilin: lines such as `Aa01A01= 人 士 人物`. confusion: lines of a character and those that it is
    confused with, with any separators. The encoding is UTF-8 or, as of the published Cilin, GBK. If
    a file has several entries for a character, the last one counts, as published.
    """

    cilin: Path | None = None
    confusion: Path | None = None

    @property
    def name(self) -> str:
        """The files that decide the costs, for the signature, each with 8 digits of its SHA-256."""
        files = (f"{name}@{_hash_file(path)[:8]}" for name, path in self.files.items())
        return "+".join(["pinyin", *files])

    @property
    def files(self) -> dict[str, Path]:
        """The given files by name."""
        files = (("cilin", self.cilin), ("confusion", self.confusion))
        return {name: path for name, path in files if path is not None}

    @property
    def details(self) -> dict[str, str]:
        """The paths of the files, with which a score can be computed again."""
        return {name: str(path) for name, path in self.files.items()}


NO_DICTIONARIES = Dictionaries()


class Attributes(NamedTuple):
    """Attributes of characters by code point, for the kernel.

    marks, classes: shape (0x110000,); bit 0 of a mark is punctuation, bit 1 Chinese; a class is
    three levels of one byte each, or −1. readings: those of code point i are at
    reading_starts[i]:reading_starts[i + 1]. confusable: sorted first · 2³² + second. unknown: sem
    of characters without a class.
    """

    marks: NDArray[np.uint8]
    classes: Ints
    reading_starts: Ints
    readings: Ints
    confusable: NDArray[np.int64]
    unknown: float


@cache
def read_attributes(dictionaries: Dictionaries) -> Attributes:
    """Return the attributes of all characters; the dictionaries are read once."""
    cilin = _read_cilin(dictionaries.cilin) if dictionaries.cilin else _PARTICLES
    confused = _read_confusion(dictionaries.confusion) if dictionaries.confusion else ()
    marks, classes = np.zeros(_CODES, np.uint8), np.full(_CODES, _NO_CLASS, np.int32)
    marks[[ord(mark) for mark in PUNCTUATION]] = 0b01
    marks[_CHINESE.start : _CHINESE.stop] = 0b10
    classes[[ord(character) for character in cilin]] = list(cilin.values())
    syllables: dict[str, int] = {}
    readings = [
        [syllables.setdefault(name, len(syllables)) for name in _read_syllables(chr(code))]
        for code in _CHINESE
    ]
    counts = np.zeros(_CODES, np.int32)
    counts[_CHINESE.start : _CHINESE.stop] = [len(names) for names in readings]
    return Attributes(
        marks=marks,
        classes=classes,
        reading_starts=np.append(0, np.cumsum(counts)).astype(np.int32),
        readings=np.array([number for names in readings for number in names], np.int32),
        confusable=np.array(sorted((ord(a) << 32) + ord(b) for a, b in confused), np.int64),
        unknown=4 / 6 if dictionaries.cilin else 1.0,
    )


def to_code_points(text: str) -> Ints:
    """Return the code points of a text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return codes.astype(np.int32)


def is_chinese(character: str) -> bool:
    """Return whether the published scripts treat a character as Chinese: U+4E00 to U+9FFF."""
    return ord(character) in _CHINESE


def _read_syllables(character: str) -> tuple[str, ...]:
    """Return the readings of a character in pinyin, without tones."""
    from pypinyin import Style, pinyin

    return tuple(pinyin(character, style=Style.NORMAL, heteronym=True)[0])


@cache
def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a dictionary, taken once."""
    return hashlib.sha256(_read_bytes(path)).hexdigest()


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a dictionary; raise InputError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read as a dictionary of ChERRANT ({error.strerror})"
        ) from error


def _read_lines(path: Path, what: str) -> list[str]:
    """Return the lines of a dictionary in UTF-8 or GBK; `what` is its name in messages."""
    raw = _read_bytes(path)
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return raw.decode(encoding).splitlines()
        except UnicodeDecodeError:
            continue
    raise InputError(f"{path}: the {what} must be UTF-8 or GBK: save it as UTF-8")


def _read_cilin(path: Path) -> dict[str, int]:
    """Return each character's class, three levels of one byte each."""
    classes: dict[str, int] = {}
    for line in _read_lines(path, "Cilin"):
        match = _CILIN_LINE.match(line.strip())
        if match is None:
            continue
        high, middle, low, words = match.groups()
        code = (ord(high) << 16) + (ord(middle) << 8) + int(low)
        classes.update((word, code) for word in words.split() if len(word) == 1)
    if not classes:
        raise InputError(f"{path} is not the Cilin: it has no line such as `Aa01A01= 人 士`")
    return classes


def _read_confusion(path: Path) -> set[tuple[str, str]]:
    """Return the pairs of confusable characters, in both directions."""
    lines: dict[str, list[str]] = {}
    for line in _read_lines(path, "confusion list"):
        characters = [c for c in line if is_chinese(c)]
        lines.update(dict.fromkeys(characters[:1], characters[1:]))
    pairs = {(character, other) for character, others in lines.items() for other in others}
    return pairs | {(other, character) for character, other in pairs}
