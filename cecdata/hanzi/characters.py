"""Which code points are Han, which 8,105 are standard, and which attach to their neighbours; words,
and how often they occur (jieba's dictionary).

The facts of this room are in generated tables, see ``tables/SOURCES.md``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TABLES = Path(__file__).parent / "tables"
# First and last code point of each block of ideographs, compatibility ideographs included.
HAN_RANGES = (
    (0x3007, 0x3007),  # 〇
    (0x3400, 0x4DBF),  # extension A
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),  # compatibility
    (0x20000, 0x2A6DF),  # B
    (0x2A700, 0x2B73F),  # C
    (0x2B740, 0x2B81F),  # D
    (0x2B820, 0x2CEAF),  # E
    (0x2CEB0, 0x2EBEF),  # F
    (0x2EBF0, 0x2EE5F),  # I
    (0x2F800, 0x2FA1F),  # compatibility supplement
    (0x30000, 0x3134F),  # G
    (0x31350, 0x323AF),  # H
    (0x323B0, 0x3347F),  # J
)
_HAN_FIRST = tuple(first for first, _ in HAN_RANGES)

LENGTHS = (2, 3, 4)  # characters of a word
_FREQUENCY, _TRADITIONAL, _VARIANTS = 5, 6, 7  # columns of the table `characters`, behind the first

Ranges = NDArray[np.int32]


@cache
def read_rows(name: str) -> list[tuple[str, ...]]:
    """Return the rows of ``tables/<name>.tsv``, without the header line."""
    lines = (TABLES / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
    return [tuple(line.split("\t")) for line in lines[1:] if line]


@cache
def read_table(name: str) -> dict[str, tuple[str, ...]]:
    """Return the other cells of each row by its first cell, for tables with one row per character.

    Cells stay text: the module that owns a table parses a cell on demand, so that loading costs no
    more than splitting lines.
    """
    return {row[0]: row[1:] for row in read_rows(name)}


def is_han(code_point: int) -> bool:
    """Return whether a code point is an ideograph: URO, extensions A to J, compatibility, 〇."""
    position = bisect_right(_HAN_FIRST, code_point) - 1
    return position >= 0 and code_point <= HAN_RANGES[position][1]


@cache
def standard_characters() -> tuple[str, ...]:
    """Return the 8,105 characters of 通用规范汉字表, by code point."""
    return tuple(read_table("characters"))


@cache
def make_slots() -> Ranges:
    """Return [0x110000] for each code point its position in `standard_characters()` + 1, or 0."""
    slots = np.zeros(0x110000, np.int32)
    slots[[ord(character) for character in standard_characters()]] = range(
        1, len(standard_characters()) + 1
    )
    return slots


def is_standard(character: str) -> bool:
    """Return whether this is one of the 8,105 standard characters."""
    return character in read_table("characters")


def find_frequency(character: str) -> float:
    """Return the occurrences per million characters; above 0 for standard ones, 0.0 for others."""
    row = read_table("characters").get(character)
    return float(row[_FREQUENCY]) if row else 0.0


def traditional_forms(character: str) -> str:
    """Return the traditional forms that differ from the character, as one string: 发 → 發髮."""
    row = read_table("characters").get(character)
    return row[_TRADITIONAL] if row else ""


def variant_forms(character: str) -> str:
    """Return other variants (异体字) that the standard list replaces by this character."""
    row = read_table("characters").get(character)
    return row[_VARIANTS] if row else ""


@cache
def list_cluster_ranges(rule: str) -> tuple[Ranges, Ranges]:
    """Return the sorted ranges of code points, first and last, that stay with a neighbour.

    The rule is `before` (they attach to the character before), `after`, or `pair` (regional
    indicators: two in a row are a flag).
    """
    lines = [row for row in read_rows("clusters") if row[2] == rule]
    firsts = np.array([int(row[0], 16) for row in lines], np.int32)
    lasts = np.array([int(row[1], 16) for row in lines], np.int32)
    return firsts, lasts


@dataclass(frozen=True, slots=True)
class Words:
    """The W words of one length L, sorted by code point.

    `characters` [W, L] are positions in `standard_characters()`, `counts` [W] occurrences in
    jieba's corpus.
    """

    texts: tuple[str, ...]
    characters: NDArray[np.int32]
    counts: NDArray[np.float64]


@cache
def list_words(length: int) -> Words:
    """Return all words of `length` characters, 2 to 4."""
    # of a row: the word, its count and further columns
    chosen = [row for row in read_rows("lexicon") if len(row[0]) == length]
    points = np.frombuffer("".join(row[0] for row in chosen).encode("utf-32-le"), np.uint32)
    characters = make_slots()[points].reshape(-1, length) - 1
    counts = np.array([row[1] for row in chosen], np.float64)
    return Words(tuple(row[0] for row in chosen), characters, counts)
