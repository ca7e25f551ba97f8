"""N-gram models counted from text: its words by a lexicon, and their modified Kneser-Ney discounts.

A sentence is cut into the words with the greatest joint probability; runs of Han are counted apart.

New words are found by statistics: strings that are bound within and free outside. A string is bound
if its parts occur together far more often than by chance, however it is cut (pointwise mutual
information), and free if many characters stand before and behind it (branching entropy).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from cecdata.lm import kernels
from cecdata.lm.table import LONGEST, Ints, Ngrams, join_points, make_trie

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Hashes = NDArray[np.uint64]
_BLOCK = 1 << 16  # sentences that are cut at once
_LEAST = 1e-9  # probability
LONGEST_NEW, FEWEST = 6, 3  # characters of a new word; its occurrences
BOUND, FREE = 3.0, 0.6  # least mutual information and entropy of a new word, in nats
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Segmenter:
    """Cuts sentences into words. costs: -log P of each word; number 0 is what no word is."""

    def __init__(self, words: tuple[str, ...], costs: Doubles) -> None:
        self._trie, self._log_prob = make_trie(words), -costs.astype(np.float32)

    def cut(self, sentences: Sequence[str]) -> Ints:
        """Return the numbers of the words of all runs of Han, each run with -1 behind it."""
        points, offsets = join_points(sentences)
        numbers = np.empty(2 * len(points) + 1, np.int32)
        used = kernels.cut_runs(points, offsets, self._trie, self._log_prob, LONGEST, numbers)
        return numbers[:used]


class Counts:
    """How often the words, pairs and triples of text occur; its memory grows with the distinct."""

    def __init__(self, size: int) -> None:
        self.size = np.int64(size)
        self.words = np.zeros(size)
        # sorted numbers to the base `size`, whose digits are words, and how often each occurs
        self.pairs = self.triples = np.zeros(0, np.int64), np.zeros(0)

    def add(self, stream: Ints) -> None:
        """Count a stream of words; runs end with -1, and word 0 is unknown."""
        self.words += np.bincount(stream[stream > 0], minlength=int(self.size))
        left, right = stream[:-1].astype(np.int64), stream[1:].astype(np.int64)
        is_pair = (left > 0) & (right > 0)
        pairs = left * self.size + right
        self.pairs = _add_keys(self.pairs, pairs[is_pair])
        is_triple = is_pair[:-1] & is_pair[1:]
        triples = pairs[:-1] * self.size + right[1:]
        self.triples = _add_keys(self.triples, triples[is_triple])


def count_words(segmenter: Segmenter, size: int, sentences: Iterable[Sequence[str]]) -> Counts:
    """Return the counts of the words of blocks of sentences."""
    counts = Counts(size)
    for block in sentences:
        for at in range(0, len(block), _BLOCK):
            counts.add(segmenter.cut(block[at : at + _BLOCK]))
    return counts


def fit_back_off(
    counts: Counts,
    words: tuple[str, ...],
    shares: Doubles,
    *,
    name: str,
    licence: str,
    error: float,
    least_pairs: int = 1,
    least_triples: int = 3,
) -> Ngrams:
    """Return the interpolated Kneser-Ney model of counts, written as a back-off model.

    shares: P of each word alone. least_pairs, least_triples: bigrams and trigrams that occur less
    often are left out. The discounts are those of Chen and Goodman (1999).
    """
    size = counts.size
    (pairs, pair_counts), (triples, triple_counts) = counts.pairs, counts.triples
    # bigrams u w: P(w | u) = (c - D) / c(u) + gamma(u) P(w), of which the first term is `part`
    u, w = pairs // size, pairs % size
    discounted = pair_counts - find_discounts(pair_counts)
    part = discounted / np.bincount(u, pair_counts, len(words))[u]
    frequent = pair_counts >= least_pairs
    gamma = np.ones(len(words)) - np.bincount(u[frequent], part[frequent], len(words))
    pair_prob = part + gamma[u] * shares[w]
    # trigrams u v w: P(w | u, v) = (c - D) / c(u, v) + gamma(u, v) P(w | v)
    # a trigram occurs no more often than its bigrams, which the model then has, too
    kept = triple_counts >= max(least_pairs, least_triples)
    discounted = (triple_counts - find_discounts(triple_counts))[kept]
    first = np.searchsorted(pairs, triples[kept] // size)  # the places of both bigrams in `pairs`
    second = np.searchsorted(pairs, triples[kept] % (size * size))
    part_of_triple = discounted / pair_counts[first]
    gamma_of_pair = np.ones(len(pairs)) - np.bincount(first, part_of_triple, len(pairs))
    return Ngrams(
        name=name,
        licence=licence,
        error=error,
        words=words,
        word_log_prob=to_logs(shares),
        word_backoff=to_logs(gamma),
        pairs=np.column_stack([u, w])[frequent].astype(np.int32),
        pair_log_prob=to_logs(pair_prob[frequent]),
        pair_backoff=to_logs(gamma_of_pair[frequent]),
        triples=np.column_stack([u[first], w[first], w[second]]).astype(np.int32),
        triple_log_prob=to_logs(part_of_triple + gamma_of_pair[first] * pair_prob[second]),
    )


def remove_words(model: Ngrams, left_out: NDArray[np.bool_]) -> Ngrams:
    """Return a model without these of its words [V] and their n-grams."""
    keep = ~left_out
    number = (np.cumsum(keep) - 1).astype(np.int32)
    pairs, triples = keep[model.pairs].all(1), keep[model.triples].all(1)
    return replace(
        model,
        words=tuple(compress(model.words, keep)),
        word_log_prob=model.word_log_prob[keep],
        word_backoff=model.word_backoff[keep],
        pairs=number[model.pairs[pairs]],
        pair_log_prob=model.pair_log_prob[pairs],
        pair_backoff=model.pair_backoff[pairs],
        triples=number[model.triples[triples]],
        triple_log_prob=model.triple_log_prob[triples],
    )


def find_discounts(counts: Doubles) -> Doubles:
    """Return the modified Kneser-Ney discount of each count; 0.5 to 1.5 where text is too small."""
    n = [float((counts == k).sum()) for k in range(1, 5)]  # n-grams that occur k times
    if min(n) == 0:
        by_count = [0.5, 1.0, 1.5]
    else:
        base = n[0] / (n[0] + 2 * n[1])
        by_count = [k - (k + 1) * base * n[k] / n[k - 1] for k in range(1, 4)]
    return np.array(by_count)[np.minimum(counts, 3).astype(np.int64) - 1]


def _add_keys(before: tuple[Longs, Doubles], keys: Longs) -> tuple[Longs, Doubles]:
    """Return sorted distinct keys and their counts, with those of further occurrences."""
    all_keys = np.concatenate([before[0], keys])
    weights = np.concatenate([before[1], np.ones(len(keys))])
    order = np.argsort(all_keys, kind="stable")
    all_keys = all_keys[order]
    begins = np.flatnonzero(np.diff(all_keys, prepend=-1))
    if not len(begins):
        return before
    return all_keys[begins], np.add.reduceat(weights[order], begins)


def to_logs(values: Doubles) -> NDArray[np.float32]:
    """Return the natural logarithms of probabilities, which are at least `_LEAST`."""
    return np.log(np.clip(values, _LEAST, 1.0)).astype(np.float32)


def find_words(
    sentences: Sequence[str], known: Container[str] = (), bound: float = BOUND
) -> dict[str, int]:
    """Return the words of the sentences that are not known, and how often each occurs."""
    joined = " ".join(["", *sentences, ""])
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    han = (points >= 0x4E00) & (points <= 0x9FFF)
    texts = _Strings(points, han)
    new_words: dict[str, int] = {}
    for length in range(2, LONGEST_NEW + 1):
        for at, count in texts.find_words_of_length(length, bound):
            word = joined[at : at + length]
            if word not in known:
                new_words[word] = count
    return dict(sorted(new_words.items()))


class _Strings:
    """The strings of up to LONGEST_NEW characters of Han, by hashes that stand for them.

    `points` are the code points of a text, and `han` says which of these places are Han.
    """

    def __init__(self, points: NDArray[np.uint32], han: NDArray[np.bool_]) -> None:
        self._points, self._han = points, han
        self._total = max(int(han.sum()), 1)
        # by length: the hash of the string from each place, whether it is Han; and the distinct
        # hashes, sorted, and how often each occurs
        self._keys: list[Hashes] = [np.zeros(len(points), np.uint64)]
        self._is_han = [np.ones(len(points), np.bool_)]
        self._distinct: list[tuple[Hashes, Longs]] = [np.unique(self._keys[0], return_counts=True)]
        for last in range(LONGEST_NEW):  # the place of the last character in the string
            keys, is_han = self._keys[-1].copy(), self._is_han[-1].copy()
            fitting = len(points) - last
            keys[:fitting] = (keys[:fitting] ^ points[last:].astype(np.uint64)) * _FACTOR
            keys ^= keys >> np.uint64(29)
            is_han[:fitting] &= han[last:]
            is_han[fitting:] = False
            self._keys.append(keys)
            self._is_han.append(is_han)
            self._distinct.append(np.unique(keys[is_han], return_counts=True))

    def find_words_of_length(self, length: int, least: float) -> list[tuple[int, int]]:
        """Return each word of this length: one of its places, and how often it occurs.

        `least` is the mutual information of its parts from which a string is bound.
        """
        places = np.flatnonzero(self._is_han[length])
        _, first, string_at, counts = np.unique(
            self._keys[length][places], return_index=True, return_inverse=True, return_counts=True
        )
        begins, frequent = places[first], counts >= FEWEST  # of each distinct string
        is_bound = np.zeros(len(begins), np.bool_)
        binding = self._measure_binding(begins[frequent], counts[frequent], length)
        is_bound[frequent] = binding > least
        kept = is_bound[string_at]
        # the lower of the entropies of the characters before and behind
        freedom = np.full(len(begins), np.inf)
        for beside in (places[kept] - 1, places[kept] + length):
            entropy = self._measure_entropy(string_at[kept], beside, len(begins))
            freedom = np.minimum(freedom, entropy)
        words = np.flatnonzero(is_bound & (freedom > FREE))
        return list(zip(begins[words].tolist(), counts[words].tolist(), strict=True))

    def _measure_binding(self, begins: Longs, counts: Longs, length: int) -> Doubles:
        """Return the mutual information of the two parts of each string, where it is least."""
        least = np.full(len(begins), np.inf)
        for size in range(1, length):
            left = self._look_up_counts(self._keys[size][begins], size)
            right = self._look_up_counts(self._keys[length - size][begins + size], length - size)
            least = np.minimum(least, np.log(counts * self._total / (left * right)))
        return least

    def _look_up_counts(self, keys: Hashes, length: int) -> Longs:
        """Return how often each string of this length occurs, by its hash."""
        distinct, counts = self._distinct[length]
        return counts[np.searchsorted(distinct, keys)]

    def _measure_entropy(self, string: Longs, beside: Longs, size: int) -> Doubles:
        """Return the entropy of the characters beside each of `size` strings.

        string: the number of one for each place. beside: the places of the characters.
        """
        points = np.where(self._han[beside], self._points[beside], 0).astype(np.int64)
        pairs, counts = np.unique(string << 21 | points, return_counts=True)  # 21 bits of a point
        string_of_pair = pairs >> 21
        shares = counts / np.bincount(string, minlength=size)[string_of_pair]
        return np.asarray(np.bincount(string_of_pair, -shares * np.log(shares), size), np.float64)
