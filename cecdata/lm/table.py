"""A trigram model of words as flat arrays: the tables of the kernels, and the file of a model.

Log-probabilities are natural logarithms. A word is a number below 2**20; number 0 is the unknown
word. In memory a bigram is one 64-bit slot of a hash table: 20 + 20 bits of words, 8 bits of
log P and 8 bits of back-off, so that a look-up costs one access to memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common import arrays
from cecdata.common.errors import InputError
from cecdata.lm import kernels

KIND = "cecdata n-gram table 2"
MOST_WORDS, MOST_PAIRS = 1 << 20, 1 << 23  # what the bits of a slot's key can number
LONGEST = 8  # characters of the longest word that a lattice uses
Longs = NDArray[np.uint64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


class Trie(NamedTuple):
    """The words' characters as a hash table of edges (`kernels`): node << 21 | code point.

    `edge_nodes` has the node to which each edge leads, `word` the number of the word that ends at
    a node, or -1.
    """

    edge_keys: Longs
    edge_nodes: Ints
    edge_marks: Longs
    edge_shift: np.uint64
    word: Ints


class Tables(NamedTuple):
    """The arrays that kernels take, of which the first are those of a `Trie`.

    `log_prob` and `backoff` are by word; `most` is an upper bound of log P of a word after any
    other. The n-grams are hash tables, see `kernels`.
    """

    edge_keys: Longs
    edge_nodes: Ints
    edge_marks: Longs
    edge_shift: np.uint64
    word: Ints
    log_prob: Floats
    backoff: Floats
    most: Floats
    bigrams: Longs
    bigram_marks: Longs
    bigram_shift: np.uint64
    trigrams: Longs
    trigram_shift: np.uint64


@dataclass(frozen=True, slots=True)
class Ngrams:
    """The n-grams of a model, sorted by their words.

    `words` are by number; `pairs` [N2, 2] and `triples` [N3, 3] hold word numbers in reading order.
    Back-offs and log-probabilities are natural logarithms. `error` is θ, the cost of an error in
    nats that fits the model: a model of less text gives more right words a low probability, so
    that an error must cost more. `share` is that of a field's model in its mean with the default
    one; 0 for a model that stands alone.
    """

    name: str
    licence: str
    words: tuple[str, ...]
    word_log_prob: Floats
    word_backoff: Floats
    pairs: Ints
    pair_log_prob: Floats
    pair_backoff: Floats
    triples: Ints
    triple_log_prob: Floats
    error: float = 3.0
    share: float = 0.0

    def build_tables(self, *, trigrams: bool = True) -> Tables:
        """Build the hash tables; about half a second for two million bigrams.

        Without `trigrams` their table stays empty. Raises `InputError` where the model has more
        words or bigrams than a slot can number.
        """
        for what, size, most in (
            ("words", len(self.words), MOST_WORDS),
            ("bigrams", len(self.pairs), MOST_PAIRS),
        ):
            if size >= most:
                raise InputError(
                    f"{self.name} has {size:,} {what}, the limit is {most - 1:,}: prune the model"
                )
        bigram_slots = _make_slots(len(self.pairs))
        kernels.fill_bigrams(
            bigram_slots,
            self.pairs,
            kernels.quantise(self.pair_log_prob),
            kernels.quantise(self.pair_backoff),
        )
        bigram_shift = _find_shift(bigram_slots)
        bigram_marks = kernels.make_marks(bigram_slots, bigram_shift, kernels.PAIR)
        triples = self.triples if trigrams else self.triples[:0]
        trigram_slots = _make_slots(len(triples))
        log_prob = kernels.quantise(self.triple_log_prob)
        lost = kernels.fill_trigrams(trigram_slots, bigram_slots, bigram_marks, triples, log_prob)
        if lost:
            raise InputError(f"{self.name}: {lost} trigrams begin with a bigram that is not listed")
        most_log_prob = self.word_log_prob.copy()
        np.maximum.at(most_log_prob, self.pairs[:, 1], self.pair_log_prob)
        return Tables(
            *make_trie(self.words),
            log_prob=self.word_log_prob,
            backoff=self.word_backoff,
            most=most_log_prob,
            bigrams=bigram_slots,
            bigram_marks=bigram_marks,
            bigram_shift=bigram_shift,
            trigrams=trigram_slots,
            trigram_shift=_find_shift(trigram_slots),
        )

    def save(self, path: Path) -> None:
        """Write the model as a compressed file of arrays; it rounds log P to within 0.04 nats."""
        size = len(self.words)
        keys = self.pairs[:, 0].astype(np.int64) * size + self.pairs[:, 1]
        pair_order = np.argsort(keys)
        keys, pairs = keys[pair_order], self.pairs[pair_order]
        triples = self.triples  # saved as the row of its first two words in `pairs`, and the third
        first = np.searchsorted(keys, triples[:, 0].astype(np.int64) * size + triples[:, 1])
        triple_order = np.lexsort((triples[:, 2], first))
        arrays.save(
            path,
            KIND,
            {
                "name": self.name,
                "licence": self.licence,
                "error": self.error,
                **({"share": self.share} if self.share else {}),
            },
            {
                "words": arrays.join_texts(self.words),
                "word_log_prob": kernels.quantise(self.word_log_prob),
                "word_backoff": kernels.quantise(self.word_backoff),
                **_encode_rows("pair", pairs[:, 0], pairs[:, 1], size),
                "pair_log_prob": kernels.quantise(self.pair_log_prob[pair_order]),
                "pair_backoff": kernels.quantise(self.pair_backoff[pair_order]),
                **_encode_rows("triple", first[triple_order], triples[triple_order, 2], len(pairs)),
                "triple_log_prob": kernels.quantise(self.triple_log_prob[triple_order]),
            },
        )


def load_ngrams(path: Path) -> Ngrams:
    """Read a model that `Ngrams.save` wrote.

    Raises `InputError` where the file is damaged or of another kind.
    """
    mend = "Name the ARPA file that it was made of, or make it anew"
    about, columns = arrays.load(path, KIND, mend)
    try:
        pairs = _decode_rows("pair", columns)
        first, third = _decode_rows("triple", columns).T
        return Ngrams(
            name=str(about["name"]),
            licence=str(about["licence"]),
            error=float(str(about["error"])),
            share=float(str(about.get("share", 0.0))),
            words=arrays.split_texts(columns["words"]),
            word_log_prob=kernels.restore_steps(columns["word_log_prob"]),
            word_backoff=kernels.restore_steps(columns["word_backoff"]),
            pairs=pairs,
            pair_log_prob=kernels.restore_steps(columns["pair_log_prob"]),
            pair_backoff=kernels.restore_steps(columns["pair_backoff"]),
            triples=np.column_stack([pairs[first], third]),
            triple_log_prob=kernels.restore_steps(columns["triple_log_prob"]),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"{path} is damaged ({error}). {mend}") from error


def score_texts(texts: Sequence[str], tables: Tables) -> NDArray[np.float64]:
    """Return log P of the Chinese characters of each text in nats."""
    encoded = [text.encode(errors="replace") for text in texts]
    data = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    bounds = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    nats = np.zeros(len(encoded))
    kernels.score_rows(data, bounds, tables, LONGEST, nats)
    return nats


def _encode_rows(
    name: str, first: NDArray[np.integer], last: NDArray[np.integer], size: int
) -> dict[str, NDArray[np.generic]]:
    """Return sorted pairs (first, last) as columns that compress well: `NAME_counts` and `NAMEs`.

    These are how many pairs begin with each number below `size`, and by how much `last` grows from
    pair to pair of these. The growth is split into four planes of bytes, the higher ones of which
    are nearly all zero.
    """
    growth = np.diff(last, prepend=0)
    is_first = np.diff(first, prepend=-1) != 0
    growth[is_first] = last[is_first]
    planes = growth.astype("<u4").view(np.uint8).reshape(-1, 4).T
    return {f"{name}_counts": np.bincount(first, minlength=size).astype("<i4"), f"{name}s": planes}


def _decode_rows(name: str, columns: Mapping[str, NDArray[np.generic]]) -> Ints:
    """Return the pairs of numbers (first, last), [N, 2], that `_encode_rows` encoded."""
    counts = columns[f"{name}_counts"].astype(np.int64)
    planes = np.ascontiguousarray(columns[f"{name}s"].T, np.uint8)
    sums = np.cumsum(planes.view("<u4").ravel().astype(np.int64))
    # what each sum has of the rows before its own is taken off
    before = np.concatenate([np.zeros(1, np.int64), sums])[np.cumsum(counts) - counts]
    first = np.repeat(np.arange(len(counts)), counts)
    return np.column_stack([first, sums - np.repeat(before, counts)]).astype(np.int32)


def _make_slots(count: int) -> Longs:
    """Return an empty hash table of which `count` entries fill at most two thirds."""
    size = 1 << max(10, int(count * 1.5).bit_length())
    return np.zeros(size, np.uint64)


def _find_shift(slots: Longs) -> np.uint64:
    """Return the shift by which a key finds its slot."""
    return np.uint64(kernels.find_shift(len(slots)))


def make_trie(words: tuple[str, ...]) -> Trie:
    """Return the trie of words, without the unknown word and those longer than `LONGEST`."""
    sizes = np.fromiter(map(len, words), np.int64)
    numbers = np.flatnonzero(sizes <= LONGEST)[1:].astype(np.int32)
    points, bounds = join_points([words[number] for number in numbers.tolist()])
    keys = _make_slots(len(points) + 1)
    nodes = np.zeros(len(keys), np.int32)
    word_of_node = np.full(len(points) + 1, -1, np.int32)
    used = kernels.fill_trie(keys, nodes, word_of_node, 1, points, bounds, numbers)
    return _mark_edges(keys, nodes, word_of_node[:used])


def _mark_edges(keys: Longs, nodes: Ints, word_of_node: Ints) -> Trie:
    """Return the trie of a filled hash table of edges."""
    shift = _find_shift(keys)
    return Trie(keys, nodes, kernels.make_marks(keys, shift, kernels.EMPTY), shift, word_of_node)


def join_points(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the code points of all texts, and where each text begins, with the end."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).astype(np.int64)
    return points, np.cumsum(np.fromiter(map(len, ("", *texts)), np.int64))


def add_words(tables: Tables, words: Mapping[str, float]) -> tuple[Tables, Ints]:
    """Return the tables with further words, and the words' numbers.

    words: the least log P of each. A word that the tables have keeps its number, and the new number
    that it would have had stays unused. Arrays that no word changes are shared.
    """
    size, least = len(tables.log_prob), np.array(list(words.values()), np.float32)
    if size + len(words) >= MOST_WORDS:
        raise InputError(f"the model has {size:,} words, so that {len(words):,} more do not fit")
    trie, numbers = _extend_trie(tables, list(words))
    log_prob, most = (np.append(values, least) for values in (tables.log_prob, tables.most))
    for values in (log_prob, most):
        values[numbers] = np.maximum(values[numbers], least)
    backoff = np.append(tables.backoff, np.zeros(len(words), np.float32))
    added = tables._replace(**trie._asdict(), log_prob=log_prob, backoff=backoff, most=most)
    return added, numbers


def _extend_trie(tables: Tables, words: Sequence[str]) -> tuple[Trie, Ints]:
    """Return a copy of the tables' trie with further words, and the words' numbers in it."""
    points, bounds = join_points(words)
    node_count, size = len(tables.word), len(tables.log_prob)
    keys, nodes = tables.edge_keys.copy(), tables.edge_nodes.copy()
    larger = _make_slots(node_count + len(points))
    if len(larger) > len(keys):
        keys, nodes = larger, np.zeros(len(larger), np.int32)
        kernels.copy_trie(keys, nodes, tables.edge_keys, tables.edge_nodes)
    word_of_node = np.append(tables.word, np.full(len(points), -1, np.int32))
    numbers = np.arange(size, size + len(words), dtype=np.int32)
    # which also puts the numbers of the words that the tables have into `numbers`
    used = kernels.fill_trie(keys, nodes, word_of_node, node_count, points, bounds, numbers)
    return _mark_edges(keys, nodes, word_of_node[:used]), numbers
