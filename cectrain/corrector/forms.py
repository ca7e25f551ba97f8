"""Traditional forms and variants within simplified text: 他沒來 is read and corrected as 他没来."""

from __future__ import annotations

import re
from functools import cache

from cecdata.hanzi.characters import (
    is_han,
    is_standard,
    standard_characters,
    traditional_forms,
    variant_forms,
)
from cectrain.corrector.correction import Edit
from cectrain.corrector.edit_guard import Plain, Protected

#: Confidence that a form is no quotation, name or word of another language.
CONFIDENCE = 0.9
#: Where more of the Han characters of a text are such forms, it is not simplified text.
MOST = 0.2
#: What is quoted keeps its forms, as a name does.
_QUOTED = re.compile("《[^《》]*》|“[^“”]*”|「[^「」]*」|『[^『』]*』")


def edits_of_forms(plain: Plain, protected: Protected) -> list[Edit]:
    """Return the edits that put the standard character in the place of another form of it.

    >>> from cectrain.corrector.wordlists import Phrases
    >>> plain = Plain.of("他沒有来。")
    >>> [edit.target for edit in edits_of_forms(plain, Protected(plain.text, Phrases([])))]
    ['没']
    """
    forms = _standard_of_form()
    places = [at for at, character in enumerate(plain.text) if character in forms]
    if len(places) > max(1, MOST * sum(is_han(ord(character)) for character in plain.text)):
        return []
    quoted = {at for match in _QUOTED.finditer(plain.text) for at in range(*match.span())}
    settled = plain.fixed | plain.forms | quoted
    return [
        Edit(
            start=at,
            end=at + 1,
            source=plain.text[at],
            target=forms[plain.text[at]],
            confidence=CONFIDENCE,
            rule="form",
        )
        for at in places
        if not protected.holds(at, at + 1) and at not in settled
    ]


@cache
def _standard_of_form() -> dict[str, str]:
    """Return the standard character of each form that has one alone."""
    standard: dict[str, set[str]] = {}
    for character in standard_characters():
        for form in traditional_forms(character) + variant_forms(character):
            if not is_standard(form):
                standard.setdefault(form, set()).add(character)
    return {form: min(of_form) for form, of_form in standard.items() if len(of_form) == 1}
