"""The treatment of each character by the normaliser, as one table over the code points."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import numpy.typing as npt

PLAIN, SPACE, SLOW = 0, 1, 2  # SLOW: the row must go through `normalise_text`
TABLE_SIZE = 0x30000  # planes 0-2; above: plane 3 is Han, 14 variation selectors, 15-16 private

WHITESPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Invisible: soft hyphen, zero-width space, word joiner, byte order mark, direction marks.
INVISIBLE = "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
JOINERS = "\u200c\u200d"  # stay inside emoji and scripts that need them
HAN_CLASS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Reason → the characters for which a row is rejected. Tab and line ends count as whitespace.
FORBIDDEN: dict[str, str] = {
    "control_character": "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f",
    "replacement_character": "\ufffc\ufffd",
    "private_use": "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd",
    "noncharacter": "\ufdd0-\ufdef"
    + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(17)),
}


@functools.cache
def classes() -> npt.NDArray[np.uint8]:
    """Return the class of every code point below TABLE_SIZE, shape (TABLE_SIZE,).

    SLOW is every character that is removed, folded or forbidden, and every one that NFC might
    change: one with a non-zero combining class, one that is not its own NFC, and the second part of
    a composition.
    """
    table = np.zeros(TABLE_SIZE, dtype=np.uint8)
    for start, end in _ranges(_slow_class()):
        table[start : min(end, TABLE_SIZE - 1) + 1] = SLOW
    table[sorted(map(ord, unstable()))] = SLOW
    table[0x1160:0x1200] = SLOW  # Hangul vowels and finals compose by arithmetic
    table[ord(" ")] = SPACE
    return table


def _slow_class() -> str:
    return WHITESPACE + INVISIBLE + JOINERS + "".join(FORBIDDEN.values())


def _ranges(pattern: str) -> list[tuple[int, int]]:
    """Return the ranges of a character class as written between brackets."""
    pairs = re.findall(r"(.)-(.)|(.)", pattern, re.DOTALL)
    return [(ord(a or c), ord(b or c)) for a, b, c in pairs]


@functools.cache
def unstable() -> frozenset[str]:
    """Return the characters below TABLE_SIZE that canonical composition may touch."""
    chars: set[str] = set()
    for char in map(chr, range(TABLE_SIZE)):
        if unicodedata.combining(char) or not unicodedata.is_normalized("NFC", char):
            chars.add(char)
        parts = unicodedata.decomposition(char)
        if parts and parts[0] != "<":
            chars.update(chr(int(part, 16)) for part in parts.split()[1:])
    return frozenset(chars)


@functools.cache
def marks() -> re.Pattern[str]:
    """Return the pattern of a run of combining marks."""
    return re.compile(f"[{''.join(c for c in unstable() if unicodedata.combining(c))}]+")
