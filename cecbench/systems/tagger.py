"""Correctors of the BERT family, which predict one character for each character.

Characters outside the vocabulary and those beyond the longest input are kept unchanged; the
answer's status says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import click

from cecbench.option import option
from cecbench.systems.base import Answer, Kind, LocalOptions, SureEdit, applied
from cecdata.models.tagger import Tagged, Tagger


@dataclass(frozen=True)
class TaggerOptions(LocalOptions):
    """Options of a tagger."""

    max_length: int = option(
        512,
        "Maximum number of tokens that are read of a sentence; the rest stays unchanged.",
        type=click.IntRange(min=8),
    )
    rephrase: bool = option(
        default=False,
        meaning="Use the input format of ReLM: source, separator, and one mask for each character.",
    )


class TaggerSystem:
    """A corrector whose answers have the length of their sources."""

    block = 2048

    def __init__(self, checkpoint: str, options: TaggerOptions) -> None:
        self.tagger = Tagger(checkpoint, **asdict(options))
        self.identity: Mapping[str, object] = self.tagger.identity
        self.name = str(self.identity["checkpoint"])

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source, of the source's length."""
        for source, tagged in zip(sources, self.tagger.tag(sources), strict=True):
            yield _answer(source, tagged)


def _answer(source: str, tagged: Tagged) -> Answer:
    encoded = tagged.encoded
    edits = [SureEdit(place, place + 1, text, sure) for place, text, sure in tagged.changes]
    status = "ok"
    if encoded.truncated:
        status = "truncated"
    elif any(o is None and not c.isspace() for o, c in zip(encoded.own, source, strict=True)):
        status = "unknown"
    text = applied(source, edits)
    counts = len(encoded.tokens), len(source)
    return Answer(text, text, status, *counts, tagged.seconds, tuple(edits))


KIND = Kind(
    "tagger:PATH",
    "a BERT-family corrector: folder or hub name",
    TaggerOptions,
    lambda argument, options, _: TaggerSystem(argument, options),
)
