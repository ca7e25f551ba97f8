"""Several n-gram models as one: the mean of their probabilities, weighted by how well they do.

A model gives a word that it lacks the probability of its likeliest parts, so that a word of one
model alone is neither free nor impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, compress, repeat

import numpy as np
from numpy.typing import NDArray

from cecdata.common.machine import count_usable_cores
from cecdata.lm.counting import Segmenter, to_logs
from cecdata.lm.table import Floats, Ints, Ngrams, score_texts

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
_ROUNDS = 20  # of the EM algorithm; further ones hardly move the share


class _Numbered:
    """A model by the numbers of a larger vocabulary: its n-grams as sorted keys.

    A key is a number to the base `size`, whose digits are the words. `pair_values` are log P and
    back-off of each pair, [2, pairs].
    """

    def __init__(self, model: Ngrams, vocabulary: dict[str, int]) -> None:
        self.size = len(vocabulary)
        numbers = np.fromiter(map(vocabulary.__getitem__, model.words), np.int64)
        lacking = np.ones(self.size, np.bool_)
        lacking[numbers] = False
        self.log_prob = np.zeros(self.size)
        self.log_prob[numbers] = model.word_log_prob
        if lacking.any():  # by the likeliest parts of the words
            words = list(compress(vocabulary, lacking))
            self.log_prob[lacking] = score_texts(words, model.build_tables(trigrams=False))
        self.backoff = np.zeros(self.size)
        self.backoff[numbers] = model.word_backoff
        pairs: Longs = numbers[model.pairs] @ np.array([self.size, 1])
        order = np.argsort(pairs, kind="stable")  # most models are sorted
        self.pairs = pairs[order]
        self.pair_values = np.stack([model.pair_log_prob[order], model.pair_backoff[order]])
        triples: Longs = numbers[model.triples] @ np.array([self.size**2, self.size, 1])
        order = np.argsort(triples, kind="stable")
        self.triples, self.triple_log_prob = triples[order], model.triple_log_prob[order]

    def look_up_pairs(self, keys: Longs) -> Doubles:
        """Return [log P of the second word after the first, back-off] of each pair, [2, N]."""
        backed_off = self.backoff[keys // self.size] + self.log_prob[keys % self.size]
        defaults = np.stack([backed_off, np.zeros(len(keys))])
        return _look_up(self.pairs, self.pair_values, keys, defaults)

    def look_up_triples(self, keys: Longs, backed_off: Doubles) -> Doubles:
        """Return log P of the last word of each triple, `backed_off` where it is not listed."""
        return _look_up(self.triples, self.triple_log_prob, keys, backed_off)


class Mixture:
    """Models of which one is to be made, by the numbers of all their words."""

    def __init__(self, models: Sequence[Ngrams]) -> None:
        self._models = models
        self._words = tuple(dict.fromkeys(chain.from_iterable(model.words for model in models)))
        vocabulary = {word: number for number, word in enumerate(self._words)}
        with ThreadPoolExecutor(count_usable_cores()) as threads:
            self._numbered = [*threads.map(_Numbered, models, repeat(vocabulary))]

    def share_of_last(self, weights: Sequence[float], sentences: Sequence[str]) -> float:
        """Return the share of the last model with which sentences are likeliest (EM).

        weights: those of the others among themselves.
        """
        first_pairs, triples = self._list_ngrams(sentences)
        chances = []  # of each n-gram's last word, by model
        for model in self._numbered:
            backed_off = model.look_up_pairs(triples // model.size)[1]
            backed_off += model.look_up_pairs(triples % model.size**2)[0]
            of_triples = model.look_up_triples(triples, backed_off)
            chances.append(np.exp(np.append(model.look_up_pairs(first_pairs)[0], of_triples)))
        *others, of_last = chances
        rest, share = np.average(others, axis=0, weights=weights), 0.5
        for _ in range(_ROUNDS if len(of_last) else 0):
            share = float((share * of_last / (share * of_last + (1 - share) * rest)).mean())
        return round(share, 3)

    def _list_ngrams(self, sentences: Sequence[str]) -> tuple[Longs, Longs]:
        """Return the keys of the first two words of each run of Han, and of all its triples."""
        size = len(self._words)
        costs = -np.max([model.log_prob for model in self._numbered], axis=0)
        cut = Segmenter(self._words, costs).cut(sentences).astype(np.int64)
        padded = np.append([-1, -1], cut)  # words are above 0
        left, middle, right = np.lib.stride_tricks.sliding_window_view(padded, 3).T
        pairs, is_pair = middle * size + right, (middle > 0) & (right > 0)
        triples, is_first = left * size**2 + pairs, left < 1
        return pairs[is_pair & is_first], triples[is_pair & ~is_first]

    def make_model(self, weights: Sequence[float], name: str) -> Ngrams:
        """Return one model of the words and n-grams of all.

        Its back-offs are the means of those of the models, so that an n-gram that no model lists
        gets nearly what the models give it together; so is the cost of an error.
        """
        models, size = self._numbered, len(self._words)
        pairs = _unite_keys([model.pairs for model in models])
        triples = _unite_keys([model.triples for model in models])
        first_pair = np.searchsorted(pairs, triples // size)  # the place of a triple's first words
        # its last two words, each pair once: a look-up is fast where they are sorted
        last_pairs, last_pair = np.unique(triples % size**2, return_inverse=True)
        word_chances, pair_chances = np.zeros((2, size)), np.zeros((2, len(pairs)))
        triple_chances = np.zeros(len(triples))

        def find_chances(model: _Numbered) -> tuple[Doubles, Doubles, Doubles]:
            values = model.look_up_pairs(pairs)
            backed_off = values[1, first_pair] + model.look_up_pairs(last_pairs)[0, last_pair]
            of_triples = model.look_up_triples(triples, backed_off)
            return np.exp([model.log_prob, model.backoff]), np.exp(values), np.exp(of_triples)

        with ThreadPoolExecutor(count_usable_cores()) as threads:
            chances = threads.map(find_chances, models)
        for weight, (words, two, three) in zip(weights, chances, strict=True):
            word_chances += weight * words
            pair_chances += weight * two
            triple_chances += weight * three
        error = np.average([model.error for model in self._models], weights=weights)
        return Ngrams(
            name=name,
            licence="; ".join(dict.fromkeys(model.licence for model in self._models)),
            error=round(float(error), 2),
            words=self._words,
            word_log_prob=to_logs(word_chances[0]),
            word_backoff=to_logs(word_chances[1]),
            pairs=_split_keys(pairs, size, 2),
            pair_log_prob=to_logs(pair_chances[0]),
            pair_backoff=to_logs(pair_chances[1]),
            triples=_split_keys(triples, size, 3),
            triple_log_prob=to_logs(triple_chances),
        )


def _unite_keys(parts: Sequence[Longs]) -> Longs:
    """Return the distinct keys of all parts, sorted."""
    keys = np.sort(np.concatenate(parts), kind="stable")  # merges sorted runs
    return np.asarray(keys[np.diff(keys, prepend=-1) != 0], np.int64)


def _look_up(keys: Longs, values: Floats, wanted: Longs, defaults: Doubles) -> Doubles:
    """Return the values [..., keys] of the wanted keys, or the default where `keys` lacks one."""
    if not len(keys):
        return defaults
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[..., at], defaults)


def _split_keys(keys: Longs, size: int, count: int) -> Ints:
    """Return the `count` word numbers of each key to the base `size`, [keys, count]."""
    columns = [keys // size**place % size for place in reversed(range(count))]
    return np.column_stack(columns).astype(np.int32)
