"""The corrector of a field, which corrects text of other fields as without the field.

A piece is taken for one of the field unless the n-grams with those of the field make it clearly
less likely than the n-grams without them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

from cecdata.lm.table import score_texts
from cectrain.corrector.channel.tables import ChannelTables
from cectrain.corrector.combined import CombinedProposer
from cectrain.corrector.correction import Edit
from cectrain.corrector.rescoring import Weights
from cectrain.corrector.wordlists import Term

#: Log-odds that a piece is of the field, before it is read: who names a field has mostly its text.
EXPECTED = 2.0


class FieldProposer(CombinedProposer):
    """Proposes changes to the pieces of a field; `elsewhere` does so to other pieces."""

    def __init__(
        self,
        name: str,
        lm: Path | ChannelTables,
        elsewhere: CombinedProposer,
        terms: Sequence[Term] = (),
        *,
        least: float | None = None,
        weights: Weights | None = None,
    ) -> None:
        judge = elsewhere.rescorer.scorer if elsewhere.rescorer else None
        super().__init__(name, lm, terms, least=least, rescore=judge, weights=weights)
        self.elsewhere = elsewhere
        self.longest = min(self.scorer.longest, elsewhere.scorer.longest)

    @property
    def identity(self) -> dict[str, object]:
        """What the answers depend on, besides the policies."""
        return {**super().identity, "elsewhere": self.elsewhere.channel.tables.model}

    def with_terms(self, terms: Sequence[Term]) -> FieldProposer:
        more = copy.copy(self)
        more.channel = self.channel.with_terms(terms)
        more.elsewhere = self.elsewhere.with_terms(terms)
        return more

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        log_odds = EXPECTED + score_texts(pieces, self.channel.tables.ngrams)
        log_odds -= score_texts(pieces, self.elsewhere.channel.tables.ngrams)
        inside = log_odds > 0
        answers = iter(super().propose([*compress(pieces, inside)]))
        others = iter(self.elsewhere.propose([*compress(pieces, ~inside)]))
        return [next(answers if of_field else others) for of_field in inside.tolist()]
