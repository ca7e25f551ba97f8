"""Sentences of a field's text that seem to have an error.

What is doubted in several sentences in the same way is taken for the usage of the field.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cecdata.common.progress import step
from cectrain.adapt.text import FieldText
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.correction import Correction
from cectrain.corrector.corrector import Corrector

READ = 20_000  # sentences; in more text an error is outweighed by what is right
USUAL = 3  # sentences


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence, and what the corrector would have written."""

    sentence: str
    suggestion: str


def find_doubts(channel: ChannelProposer, text: FieldText) -> tuple[Doubt, ...]:
    """Return the doubts about the first sentences of a text."""
    corrector = Corrector(channel)
    sentences = text.first(READ)
    corrections: list[Correction] = []
    for at in range(0, len(sentences), 256):
        corrections += (c for c in corrector.correct(sentences[at : at + 256]) if c.edits)
        step("sentences read for doubts", 256, len(sentences))
    often = Counter(place for c in corrections for place in {*_places(c)})
    return tuple(
        Doubt(c.source, c.target)
        for c in corrections
        if any(often[place] < USUAL for place in _places(c))
    )


def _places(correction: Correction) -> list[tuple[str, str]]:
    """Return each edit with the characters beside it, as written and as suggested."""
    source = correction.source
    return [
        (source[max(0, edit.start - 1) : edit.end + 1], edit.target) for edit in correction.edits
    ]
