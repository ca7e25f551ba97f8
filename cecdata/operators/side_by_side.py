"""Characters of two parts side by side, and whether the parts look as they do alone."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.components import Split, ids, splits
from cecdata.hanzi.ids import parse

# Ideographic description characters: left to right, and surround from lower left (走召 for 超).
BESIDE, UNDERLINED = "⿰", "⿺"
# A person spells out a part in the form that it has alone (水 for 氵), a scanner in the form that
# is drawn. The forms of these parts look alike.
_KEPT_LOOK = {"讠": "言", "钅": "金", "饣": "食", "⻊": "足", "𧾷": "足", "𤣩": "王", "攵": "文"}


def layout(character: str) -> tuple[str, tuple[str, ...]]:
    """Return (BESIDE or UNDERLINED, the two parts as drawn); ("", ()) for other characters.

    A part without a code point is ''.

    >>> layout("法"), layout("超"), layout("花")
    (('⿰', ('氵', '去')), ('⿺', ('走', '召')), ('', ()))
    """
    top = parse(ids(character))
    if top.operator not in (BESIDE, UNDERLINED) or len(top.parts) != 2:
        return "", ()
    return top.operator, tuple(part.character for part in top.parts)


def pairs(character: str) -> Iterator[Split]:
    """Yield the splits of a character into two characters, neither of them the character itself."""
    for split in splits(character):
        if len(split.parts) == 2 and character not in split.parts and split.weight > 0:
            yield split


def looks_like(parts: str, written: tuple[str, ...]) -> bool:
    """Return whether two characters look like the parts as drawn."""
    both = zip(parts, written, strict=True)
    return all(part == _KEPT_LOOK.get(sign, sign) for part, sign in both)
