"""A channel over the words of an n-gram model, as the arrays that the lattice takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cecdata.channel.table import Channel
from cecdata.ngram.kernels import shift_of
from cecdata.ngram.table import Ngrams
from cectrain.corrector.channel.lattice import fill_spans
from cectrain.corrector.channel.layout import MOST_WORD, ChannelArrays
from cectrain.corrector.channel.names import kinds

Ints = NDArray[np.int32]
NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿")
NEVER = np.float32(-99)  # log P of one numeral for another: a context says nothing of a number


def channel_arrays(channel: Channel, model: Ngrams) -> ChannelArrays:
    """Return the channel's arrays, without right texts of spans that are no word of the model."""
    size = np.diff(channel.bounds)
    single = np.array([len(text) == 1 for text in channel.observed])
    of_single = np.repeat(single, size)
    slot = np.zeros(0x110000, np.int32)
    signs = [text for text in channel.observed if len(text) == 1]
    slot[[ord(sign) for sign in signs]] = np.arange(1, len(signs) + 1)
    numbers = {word: number for number, word in enumerate(model.words) if number}
    right = [numbers.get(text, 0) for text in channel.right]
    # rows of spans without what is no word
    word = np.array(right, np.int32)
    listed = ~of_single & (word > 0)
    observed = np.repeat(np.arange(len(size)), size)
    kept = np.bincount(observed[listed], minlength=len(size))
    spans = [text for text, count in zip(channel.observed, kept.tolist(), strict=True) if count]
    points, lengths = _texts(tuple(spans))
    keys = np.zeros(1 << max(4, (2 * len(spans)).bit_length()), np.uint64)
    rows = np.zeros(len(keys), np.int32)
    fill_spans(keys, rows, points, lengths)
    word_points, word_size = _texts(("", *model.words[1:]))
    first = [ord(text[0]) for text, one in zip(channel.right, of_single, strict=True) if one]
    log_prob = np.where(_other_numbers(channel), NEVER, channel.log_prob)
    return ChannelArrays(
        slot=slot,
        bounds=np.cumsum([0, *size[single]]).astype(np.int64),
        right=np.array(first, np.int32),
        log_prob=log_prob[of_single],
        span_keys=keys,
        span_shift=np.uint64(shift_of(len(keys))),
        span_rows=rows,
        span_bounds=np.cumsum([0, *kept[kept > 0]]).astype(np.int64),
        span_words=word[listed],
        span_log_prob=log_prob[listed],
        word_points=word_points,
        word_size=word_size,
        kinds=kinds(),
    )


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
