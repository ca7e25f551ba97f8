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
# Also fillers, marks of annotations and music, variation selectors of ideographs.
INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff"
)
JOINERS = "\u200c\u200d"  # stay inside emoji and scripts that need them
STYLES = "\ufe0e\ufe0f"  # stay after emoji and symbols, and in keycaps
TAGS = "\U000e0020-\U000e007f"  # stay after the black flag
HAN_CLASS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Radicals and strokes → the ideographs that Unicode names as their equivalents, where NFKC does
# not: Equivalent_Unified_Ideograph of Unicode 14.0. The Kangxi radicals have theirs by NFKC.
_RADICALS = (
    "⺁⺂⺃⺄⺅⺆⺇⺈⺉⺊⺋⺌⺍⺎⺏⺐⺑⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠"
    "⺡⺢⺣⺤⺥⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺳⺴⺵⺶⺷⺸⺹⺺⺻⺼⺽⺾"
    "⺿⻀⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜"
    "⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲㇆㇏㇐㇑㇒㇓㇔㇕"
    "㇖㇗㇘㇙㇚㇛㇜㇝㇞㇟㇠㇡"
)
_IDEOGRAPHS = (
    "厂乛乚乙亻冂𠘨刀刂卜㔾小小兀尣尢𡯂巳幺彑彐忄心扌攵旡日月歺民"
    "氵氺灬爫爫丬牛犭王𤴔目示礻𥫗糹纟罓罒㓁冗𦉫羊𦍌𦍋耂肀聿肉𦥑艹"
    "艹艹虎衤覀西见角𧢲讠贝𧾷车辶辶辶邑钅長镸长门𨸏阝雨青韦页风飞"
    "食𩙿飠饣𩠐马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀𠃌乀一丨丿丿丶𠃍"
    "乛𠃊𠃎𠄌亅𡿨𠃋乀𠃑乚乙𠄎"
)

# Reason → the characters for which a row is rejected. Tab and line ends count as whitespace.
FORBIDDEN: dict[str, str] = {
    "control_character": "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f",
    "replacement_character": "\ufffc\ufffd",
    "private_use": "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd",
    "noncharacter": "\ufdd0-\ufdef"
    + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(17)),
}


@functools.cache
def look_alikes() -> dict[int, int]:
    """Return the ideograph of each radical and stroke of the blocks that look like ideographs."""
    kangxi = {code: ord(unicodedata.normalize("NFKC", chr(code))) for code in range(0x2F00, 0x2FD6)}
    return kangxi | dict(zip(map(ord, _RADICALS), map(ord, _IDEOGRAPHS), strict=True))


@functools.cache
def classify_treatments() -> npt.NDArray[np.uint8]:
    """Return the class of every code point below TABLE_SIZE, shape (TABLE_SIZE,).

    SLOW is every character that is removed, folded or forbidden, and every one that NFC may change:
    one with a combining class, one that is not its own NFC, and the second part of a composition.
    """
    table = np.zeros(TABLE_SIZE, dtype=np.uint8)
    # as in a pattern's class: single characters, and ranges with a hyphen
    signs = WHITESPACE + INVISIBLE + JOINERS + STYLES + "".join(FORBIDDEN.values())
    signs += "".join(map(chr, look_alikes()))
    for first, last, single in re.findall(r"(.)-(.)|(.)", signs, re.DOTALL):
        table[ord(first or single) : min(ord(last or single), TABLE_SIZE - 1) + 1] = SLOW
    table[sorted(map(ord, find_unstable_characters()))] = SLOW
    table[0x1160:0x1200] = SLOW  # Hangul vowels and finals compose by arithmetic
    table[ord(" ")] = SPACE
    return table


def find_unstable_characters() -> frozenset[str]:
    """Return the characters below TABLE_SIZE that canonical composition may touch."""
    chars: set[str] = set()
    for char in map(chr, range(TABLE_SIZE)):
        if unicodedata.combining(char) or not unicodedata.is_normalized("NFC", char):
            chars.add(char)
        parts = unicodedata.decomposition(char)
        if parts and parts[0] != "<":  # a canonical decomposition, in hexadecimal numbers
            chars.update(chr(int(part, 16)) for part in parts.split()[1:])
    return frozenset(chars)
