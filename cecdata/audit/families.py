"""Families of errors: by sound first, then by shape."""

from __future__ import annotations

from cecdata.hanzi.characters import traditional_forms, variant_forms
from cecdata.hanzi.components import additions, deletions, exchanges
from cecdata.hanzi.readings import near_sound, readings, same_sound
from cecdata.hanzi.shapes import similarity

# In the order in which they are tried.
FAMILIES = (
    "same_sound",
    "tone",
    "initial",
    "final",
    "keyboard",
    "edit1",
    "rare_reading",
    "look_alike",
    "shared_part",
    "variant",
    "other",
)


def family(right: str, wrong: str) -> str:
    """Return the first family that relates the two characters; operators do not matter.

    >>> family("已", "以"), family("在", "载"), family("未", "末"), family("们", "們")
    ('same_sound', 'same_sound', 'look_alike', 'variant')
    """
    if same_sound(right, wrong):
        return "same_sound"
    near = near_sound(right, wrong)
    if near is not None:
        return near.partition(":")[0]
    if {r.syllable for r in readings(right)} & {r.syllable for r in readings(wrong)}:
        return "rare_reading"
    return _by_eye(right, wrong)


def _by_eye(right: str, wrong: str) -> str:
    if similarity(right, wrong) > 0:
        return "look_alike"
    if wrong in deletions(right) or wrong in additions(right) or wrong in exchanges(right):
        return "shared_part"
    forms = traditional_forms(right) + variant_forms(right)
    back = traditional_forms(wrong) + variant_forms(wrong)
    return "variant" if wrong in forms or right in back else "other"
