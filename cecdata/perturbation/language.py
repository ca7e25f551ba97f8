"""The language model by which the kernel takes one of several proposals."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import numpy as np

from cecdata.common.durable import sha256_of
from cecdata.lm import kernels, ngrams
from cecdata.lm.table import Ngrams, Tables
from cecdata.perturbation.kernel.layout import FIRST_HAN, HAN, Language

_MOST_STEPS = 600  # of the costs with and without an edit: beyond 48 nats nothing differs


@lru_cache(maxsize=4)
def read_language(name: str, fluency: float) -> tuple[Language, str]:
    """Return a model for the kernel, and the SHA-256 of its files.

    `name` is what `cecdata.lm.ngrams.locate` takes. Raises InputError where it is missing or has no
    Chinese words.
    """
    model = ngrams.find(name)
    ngrams.require_chinese(model)
    digests = [sha256_of(path).sha256 for path in ngrams.locate(name)]
    return language_of(model, fluency), " ".join(digests)


def language_of(model: Ngrams, fluency: float) -> Language:
    """Return a model for the kernel, which takes proposals with this exponent."""
    tables = model.tables(trigrams=False)
    return Language(
        first=_first_nodes(tables),
        edge_keys=tables.edge_keys,
        edge_nodes=tables.edge_nodes,
        edge_marks=tables.edge_marks,
        edge_shift=tables.edge_shift,
        word=tables.word,
        cost=kernels.quantise(model.word_log_prob).astype(np.int32),
        backoff=kernels.quantise(model.word_backoff).astype(np.int32),
        bigrams=tables.bigrams,
        bigram_marks=tables.bigram_marks,
        bigram_shift=tables.bigram_shift,
        chance=_chances(fluency),
    )


def _first_nodes(tables: Tables) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the node of the trie after each Han character that begins a word, else -1."""
    nodes = np.full(HAN, -1, np.int32)
    keys = tables.edge_keys.astype(np.int64) - FIRST_HAN  # a key is node << 21 | code point
    from_root = (keys >= 0) & (keys < HAN)
    nodes[keys[from_root]] = tables.edge_nodes[from_root]
    return nodes


def _chances(fluency: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return exp(fluency · nats) for each number of steps: decimals, so that all machines agree."""
    step = Decimal(fluency) * Decimal(str(kernels.STEP))
    return np.array([float((step * n).exp()) for n in range(-_MOST_STEPS, _MOST_STEPS + 1)])


def no_language() -> Language:
    """Return empty tables, for recipes with one proposal."""
    longs, ints = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    shift = np.uint64(0)
    return Language(
        ints, longs, ints, longs, shift, ints, ints, ints, longs, longs, shift, np.zeros(0)
    )  # fmt: skip
