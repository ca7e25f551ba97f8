"""A traditional form or another variant of a simplified character (对 → 對, 没 → 沒)."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.characters import is_standard, traditional_forms, variant_forms
from cecdata.operators.base import Confusion, Operator

KINDS = ("traditional", "variant")


def confusions(character: str) -> Iterator[Confusion]:
    """Yield the forms of a character that are no standard characters, each equally likely."""
    for kind, forms in zip(KINDS, (traditional_forms, variant_forms), strict=True):
        for form in dict.fromkeys(forms(character)):
            if not is_standard(form) and form <= "\uffff":  # no keyboard offers the others
                yield Confusion(character, form, 1.0, kind)


OPERATOR = Operator("variant", "substitute", 1, KINDS, confusions)
