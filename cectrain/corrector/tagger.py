"""A tagger of the BERT family as a corrector: one character for each, with its probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cecdata.models.tagger import Tagger
from cectrain.corrector.correction import Edit, Proposer, make_edit

LEAST = 0.5  # least confidence of an edit: it must be likelier than everything else together
LONGEST = 128  # characters of a piece: such models are trained on single sentences


class TaggerProposer(Proposer):
    """Proposes the characters that are likelier than the written ones.

    least: least probability of an edit that is proposed, 0..1; None: the default.
    """

    def __init__(self, tagger: Tagger, *, least: float | None = None) -> None:
        self._tagger = tagger
        self.least = LEAST if least is None else least
        self.longest = self.most = min(LONGEST, tagger.longest - 2)

    @property
    def identity(self) -> Mapping[str, object]:
        return {**self._tagger.identity, "least": self.least}

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether it is not in the vocabulary."""
        return [not self._tagger.knows(character) for character in text]

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        """Return the edits of each piece, sorted, each of one character."""
        return [
            [
                make_edit(piece, place, place + 1, character, round(probability, 4))
                for place, character, probability in tagged.changes
                if probability >= self.least
            ]
            for piece, tagged in zip(pieces, self._tagger.tag(pieces), strict=True)
        ]
