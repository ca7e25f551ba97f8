"""Traditional and variant forms among simplified text (们 → 們), as pasted or typed elsewhere.

Its replacements are outside the 8,105 standard characters: off in every shipped recipe.
"""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import traditional_forms, variant_forms
from cecdata.operators.base import Confusion, Operator

KINDS = ("traditional", "variant")
VARIANT = 0.1  # a keyboard for traditional text offers these late, or not at all


def confusions(character: str) -> Iterator[Confusion]:
    """Yield traditional forms, the usual one first, then the other variants.

    Yield nothing for a character without a traditional form, even if it has rare variants (法 㳒,
    年 秊).
    """
    if not traditional_forms(character):
        return
    by_form: dict[str, Confusion] = {}
    for forms, kind, weight in (
        (traditional_forms(character), KINDS[0], 1.0),
        (variant_forms(character), KINDS[1], VARIANT),
    ):
        for form in forms:
            if form != character:
                by_form.setdefault(form, Confusion(character, form, weight, kind))
    yield from by_form.values()


OPERATOR = Operator("traditional", "substitute", 1, KINDS, confusions)
