"""A channel over the words of an n-gram model, as the arrays that the lattice takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cecdata.channel.table import Channel
from cecdata.ngram.kernels import shift_of
from cecdata.ngram.table import Ngrams
from cectrain.corrector.channel.lattice import fill_keys, fill_spans
from cectrain.corrector.channel.layout import MOST_WORD, ChannelArrays
from cectrain.corrector.channel.names import kinds

Ints = NDArray[np.int32]
Longs = NDArray[np.uint64]
Floats = NDArray[np.float32]
NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿")
NEVER = np.float32(-99)  # log P of one numeral for another: no context tells which number is right

LONGEST_FORM = 4  # most characters of a word without the one that is missing
LEAST_LIKELY = -14.0  # least log P of a word that may lack a character
FORMS_KEPT = 16  # most words that look the same without one of their characters
MISSING = -2.0  # added to log P that a character is missing: people's text lacks fewer


def channel_arrays(channel: Channel, model: Ngrams) -> ChannelArrays:
    """Return the channel's arrays, without spans whose right text is not a word of the model."""
    size = np.diff(channel.bounds)
    single = np.array([len(text) == 1 for text in channel.observed])
    of_single = np.repeat(single, size)
    slot = np.zeros(0x110000, np.int32)
    signs = [text for text in channel.observed if len(text) == 1]
    slot[[ord(sign) for sign in signs]] = np.arange(1, len(signs) + 1)
    log_prob = np.where(_other_numbers(channel), NEVER, channel.log_prob)
    first = [ord(text[0]) for text, one in zip(channel.right, of_single, strict=True) if one]
    word_points, word_size = _texts(("", *model.words[1:]))
    # the rows of spans: what operators rewrite, and words of which one character is missing
    numbers = {word: number for number, word in enumerate(model.words) if number}
    word = np.array([numbers.get(text, 0) for text in channel.right], np.int32)
    listed = ~of_single & (word > 0)
    key = np.repeat(_keys(*_texts(channel.observed)), size)[listed]
    chance, word = log_prob[listed], word[listed]
    if channel.missing is not None:
        forms, words = _without_one(word_points, word_size, model.word_log_prob)
        key, word = np.concatenate([key, forms]), np.concatenate([word, words])
        chance = np.append(chance, np.full(len(forms), channel.missing + MISSING, np.float32))
    order = np.argsort(key, kind="stable")
    spans, count = np.unique(key, return_counts=True)
    keys = np.zeros(1 << max(4, (2 * len(spans)).bit_length()), np.uint64)
    rows = np.zeros(len(keys), np.int32)
    fill_spans(keys, rows, spans)
    return ChannelArrays(
        slot=slot,
        bounds=np.cumsum([0, *size[single]]).astype(np.int64),
        right=np.array(first, np.int32),
        log_prob=log_prob[of_single],
        span_keys=keys,
        span_shift=np.uint64(shift_of(len(keys))),
        span_rows=rows,
        span_bounds=np.cumsum([0, *count]).astype(np.int64),
        span_words=word[order],
        span_log_prob=chance[order],
        repeated=float(NEVER) if channel.repeated is None else channel.repeated,
        word_points=word_points,
        word_size=word_size,
        kinds=kinds(),
    )


def _without_one(points: Ints, size: Ints, log_prob: Floats) -> tuple[Longs, Ints]:
    """Return the keys of words without one of their characters, and the words' numbers.

    Numerals are never left out. Words have two to `LONGEST_FORM` + 1 characters and log P of
    `LEAST_LIKELY` or more; of those with the same key the `FORMS_KEPT` likeliest are returned.
    """
    keys, words = [], []
    for length in range(2, LONGEST_FORM + 2):
        number = np.flatnonzero((size == length) & (log_prob >= LEAST_LIKELY)).astype(np.int32)
        for place in range(length):
            kept = number[~np.isin(points[number, place], [ord(sign) for sign in NUMERALS])]
            form = np.delete(points[kept], place, axis=1)
            keys.append(_keys(form, np.full(len(kept), length - 1, np.int32)))
            words.append(kept)
    key, word = np.concatenate(keys), np.concatenate(words)
    order = np.lexsort((word, -log_prob[word], key))
    key, word = key[order], word[order]
    fresh = np.append(True, (np.diff(key) != 0) | (np.diff(word) != 0))  # 妈妈 gives 妈 twice
    key, word = key[fresh], word[fresh]
    begin = np.flatnonzero(np.append(True, np.diff(key) != 0))
    rank = np.arange(len(key)) - np.repeat(begin, np.diff(np.append(begin, len(key))))
    return key[rank < FORMS_KEPT], word[rank < FORMS_KEPT]


def _keys(points: Ints, sizes: Ints) -> Longs:
    keys = np.empty(len(points), np.uint64)
    fill_keys(points, sizes, keys)
    return keys


def _other_numbers(channel: Channel) -> NDArray[np.bool_]:
    """Return for each row of the channel whether it puts a numeral in the place of another."""
    other = np.zeros(len(channel.right), np.bool_)
    for text, low, high in zip(channel.observed, channel.bounds, channel.bounds[1:], strict=False):
        if not NUMERALS.isdisjoint(text):
            for row in range(low, high):
                pairs = zip(text, channel.right[row], strict=False)
                other[row] = any(a != b and {a, b} <= NUMERALS for a, b in pairs)
    return other


def _texts(texts: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Return the code points [T, MOST_WORD] and sizes [T] of texts; longer ones are empty."""
    kept = [text if len(text) <= MOST_WORD else "" for text in texts]
    size = np.array([len(text) for text in kept], np.int32)
    points = np.zeros((len(kept), MOST_WORD), np.int32)
    within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    flat = np.frombuffer("".join(kept).encode("utf-32-le"), np.uint32)
    points[np.repeat(np.arange(len(kept)), size), within] = flat
    return points, size
