"""Punctuation and digits in the other width: a keyboard left in the wrong mode (， → ,)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.operators.base import Confusion, Operator

KINDS = ("half_width", "full_width")
# What the same key gives in Chinese and in English mode.
_KEYS = {"，": ",", "。": ".", "！": "!", "？": "?", "：": ":", "；": ";", "（": "(", "）": ")"}
_DIGITS = {chr(0xFF10 + digit): str(digit) for digit in range(10)}
TO_HALF = {**_KEYS, **_DIGITS}
TO_FULL = {half: full for full, half in TO_HALF.items()}


def confusions(character: str) -> Iterator[Confusion]:
    """Yield the character that the same key gives in the other mode."""
    if character in TO_HALF:
        yield Confusion(character, TO_HALF[character], 1.0, KINDS[0])
    elif character in TO_FULL:
        yield Confusion(character, TO_FULL[character], 1.0, KINDS[1])


OPERATOR = Operator("width", "substitute", 1, KINDS, confusions, "".join((*TO_HALF, *TO_FULL)))
