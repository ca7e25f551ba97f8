"""The n-grams of a field: counts of its words, and of new ones that its text shows to be words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from cecdata.lm.counting import Segmenter, back_off_model, count_words, find_words, without_words
from cecdata.lm.table import Ngrams
from cectrain.adapt.text import FieldText

FLOOR = 2  # fewest occurrences of a pair or triple that is written
READ_FOR_WORDS = 200_000  # sentences; a new word of more text than this is seen in a part of it
_PRIOR = 1.0  # words a sentence by which what is known of words joins what is counted


class FieldCounts:
    """Counts of the words of all sentences of a text but some, by the words of other models."""

    def __init__(self, models: Sequence[Ngrams], text: FieldText, without: Collection[str]) -> None:
        shares = {
            word: float(np.exp(log_prob))
            for model in reversed(models)
            for word, log_prob in zip(model.words[1:], model.word_log_prob[1:], strict=True)
        }
        characters = [s for s in text.first(READ_FOR_WORDS) if s not in without]
        self.new = find_words(characters, shares)
        total = sum(map(len, characters)) or 1
        self._words = ("<unk>", *shares, *self.new)
        known = np.array([0.0, *shares.values()])
        fresh = np.array([count / total for count in self.new.values()])
        costs = -np.log(np.maximum(np.concatenate([known, fresh]), 1e-12))
        self._known = np.append(known, np.zeros(len(fresh))) / known.sum()
        self._segmenter = Segmenter(self._words, costs)
        self._sentences = text.count
        self._counts = count_words(self._segmenter, len(self._words), _others(text, without))

    def add(self, sentences: Sequence[str]) -> None:
        """Count further sentences."""
        self._counts.add(self._segmenter.cut(sentences))

    def model(self) -> Ngrams:
        """Return the model of what was counted."""
        shares = self._counts.words + _PRIOR * self._sentences * self._known
        made = back_off_model(
            self._counts,
            self._words,
            shares / shares.sum(),
            name="field",
            licence="that of the field's text",
            error=3.0,
            least_pairs=FLOOR,
            least_triples=FLOOR,
        )
        unseen = self._counts.words < FLOOR
        unseen[0] = False
        return without_words(made, unseen)


def _others(text: FieldText, without: Collection[str]) -> Iterator[list[str]]:
    for block in text.blocks():
        yield [sentence for sentence in block if sentence not in without]
