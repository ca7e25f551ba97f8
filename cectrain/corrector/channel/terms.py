"""The tables of a channel with the user's terms: copies of what they change, the rest shared.

Making them takes hundredths of a second, so that each request may have terms of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.components import look_alikes
from cecdata.hanzi.readings import list_homophones
from cecdata.lm.kernels import find_shift
from cecdata.lm.table import add_words
from cectrain.corrector.channel.layout import MOST_WORD, ChannelArrays
from cectrain.corrector.channel.tables import (
    LEAST_LIKELY,
    MISSING,
    NUMERALS,
    ChannelTables,
    Ints,
    find_listed,
    find_rows,
    list_forms,
    make_span_table,
    to_points,
    weigh_reluctance,
)
from cectrain.corrector.wordlists import Term

Places = NDArray[np.int64]
UNLISTED = -7.0  # log P of an error in a term that no row of the channel has
TERM_LOG_PROB = -11.0  # of a term that the model does not know, and the least of one that it does


def add_terms(tables: ChannelTables, terms: Sequence[Term]) -> ChannelTables:
    """Return the tables with terms as words; a long term is several words."""
    if not terms:
        return tables
    parts = _split_terms(terms)
    ngrams, numbers = add_words(tables.ngrams, parts)
    points, size = to_points(list(parts))
    channel = tables.channel._replace(
        word_points=np.concatenate([tables.channel.word_points, points]),
        word_size=np.concatenate([tables.channel.word_size, size]),
    )
    channel = _add_errors(channel, "".join(parts))
    if tables.missing is not None:
        likely = numbers[ngrams.log_prob[numbers] >= LEAST_LIKELY]
        channel = _add_forms(channel, likely, tables.missing + MISSING)
    all_terms = np.union1d(tables.terms, numbers).astype(np.int32)
    return tables._replace(ngrams=ngrams, channel=_index_terms(channel, all_terms), terms=all_terms)


def _split_terms(terms: Sequence[Term]) -> dict[str, float]:
    """Return the words that the terms consist of, and log P of each."""
    words: dict[str, float] = {}
    for term in terms:
        count = -(-len(term.text) // MOST_WORD)
        cuts = [len(term.text) * part // count for part in range(count + 1)]
        for low, high in pairwise(cuts):
            word = term.text[low:high]
            words[word] = max(words.get(word, -np.inf), TERM_LOG_PROB + term.weight)
    return words


def _add_errors(channel: ChannelArrays, rights: str) -> ChannelArrays:
    """Return the channel with all characters that sound or look like these, last in the rows."""
    pairs = [
        (observed, right)
        for right in sorted({*rights})
        for observed in sorted({*list_homophones(right), *look_alikes(right)})
    ]
    observed = np.array([ord(sign) for sign, _ in pairs], np.int32)
    right = np.array([ord(sign) for _, sign in pairs], np.int32)
    chance = np.array([UNLISTED + weigh_reluctance(pair) for pair in pairs], np.float32)
    row = channel.slot[observed] - 1
    is_new = (row >= 0) & ~find_listed(channel.bounds, channel.right, row, right)
    right, chance, row = right[is_new], chance[is_new], row[is_new]
    order, end, shift = _make_room(channel.bounds, row)
    return channel._replace(
        right=np.insert(channel.right, end, right[order]),
        log_prob=np.insert(channel.log_prob, end, chance[order]),
        bounds=channel.bounds + shift,
        ends=channel.ends + shift[:-1],
    )


def _make_room(bounds: Places, row: Ints) -> tuple[Places, Places, Places]:
    """Return how an entry is added to each of these rows: the order of the entries by rows, where
    each then goes, behind those of its row, and how far the bounds of rows move.
    """
    order = np.argsort(row, kind="stable")
    added = np.bincount(row, minlength=len(bounds) - 1)
    return order, bounds[row[order] + 1], np.append(0, np.cumsum(added))


def _add_forms(channel: ChannelArrays, words: Ints, chance: float) -> ChannelArrays:
    """Return the channel with the forms of these words that lack one of their characters."""
    key, word = list_forms(channel.word_points, channel.word_size, words, NUMERALS)
    keys, rows, bounds = channel.span_keys, channel.span_rows, channel.span_bounds
    row = find_rows(keys, rows, channel.span_shift, key)
    is_new = ~find_listed(bounds, channel.span_words, row, word)
    key, word, row = key[is_new], word[is_new], row[is_new]
    # spans that the channel lacks get empty rows behind its own
    spans, of_span = np.unique(key[row < 0], return_inverse=True)
    row[row < 0] = len(bounds) - 1 + of_span
    new_rows = np.arange(len(bounds) - 1, len(bounds) - 1 + len(spans))
    bounds = np.append(bounds, np.full(len(spans), bounds[-1]))
    filled = np.flatnonzero(keys)
    keys, rows = make_span_table(
        np.concatenate([keys[filled], spans]),
        np.concatenate([rows[filled], new_rows], dtype=np.int32),
    )
    order, end, shift = _make_room(bounds, row)
    return channel._replace(
        span_keys=keys,
        span_shift=np.uint64(find_shift(len(keys))),
        span_rows=rows,
        span_bounds=bounds + shift,
        span_words=np.insert(channel.span_words, end, word[order]),
        span_log_prob=np.insert(channel.span_log_prob, end, np.float32(chance)),
    )


def _index_terms(channel: ChannelArrays, terms: Ints) -> ChannelArrays:
    """Return the channel with these words as terms, found by each of three characters."""
    term, place = np.nonzero(channel.word_points[terms, :3])  # at most two characters are wrong
    # three rows for each character, by its place in the terms
    row = 3 * channel.slot[channel.word_points[terms[term], place]] + place
    order = np.argsort(row, kind="stable")
    return channel._replace(
        term_bounds=np.searchsorted(row[order], np.arange(len(channel.term_bounds))),
        term_words=terms[term[order]],
    )
