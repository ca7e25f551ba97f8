"""Homophone swap: a character for one that sounds the same or nearly so (教 → 胶)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import frequency
from cecdata.hanzi.readings import homophones, near_homophones, sound_weight
from cecdata.operators.base import Confusion, Operator, strongest

# A pinyin input method offers frequent characters first and a person picks from the first page:
# hence the root of the replacement's frequency, and a limit.
FREQUENCY_EXPONENT = 0.5
LIMIT = 48
# How readily a near sound stands in for the right one, the same sound being 1. A pinyin input
# method does not ask for the tone; dialects mix some initials and finals; a slip of the finger
# is rare. Of real errors 67 % sound the same and 14 % nearly so.
NEAR_SOUND = {"tone": 0.4, "initial": 0.08, "final": 0.08}


def confusions(character: str) -> Iterator[Confusion]:
    """Same sound (tone included), then near sound, by how readily one is typed for the other."""
    found = {
        other: Confusion(
            character,
            other,
            sound_weight(character, other) * frequency(other) ** FREQUENCY_EXPONENT,
            "same_sound",
        )
        for other in homophones(character)
    }
    for near in near_homophones(character, tuple(NEAR_SOUND)):
        if near.character not in found:
            likeness = NEAR_SOUND[near.kind.partition(":")[0]] * near.weight
            weight = likeness * frequency(near.character) ** FREQUENCY_EXPONENT
            found[near.character] = Confusion(character, near.character, weight, "near_sound")
    yield from strongest(found, LIMIT)


OPERATOR = Operator("homophone", "substitute", 1, ("same_sound", "near_sound"), confusions)
