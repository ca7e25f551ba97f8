"""The search for texts of benchmarks in rows, in time that hardly grows with the benchmarks.

Texts are compared by their key: only letters, digits and Han characters, in lower case and without
width, accents, punctuation or spaces. A key of n characters is found by the hash of

- the whole key;
- a window: every 13 characters in a row, or the whole key if it has 7 to 12.

What a window finds is then compared character by character.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import compiled, inlined
from cecdata.common.kernels.utf8 import Bytes, Int32s, Points, code_point, string_buffers
from cecdata.corpus.normalise import judged_form

Uint64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Uint32s = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.uint8]

EXACT, OVERLAP, SHARED = 1, 2, 4
CONTAMINATED = EXACT | OVERLAP
WINDOW = 13  # the usual width in decontamination of language-model corpora
SHORTEST_WINDOW = 7  # a shorter key inside a longer text says little
SHORTEST = 3  # a shorter key, such as a label or a name, identifies nothing
_PIECE = 20  # characters: a shorter row inside a benchmark's text may be a name or a formula
_BLOOM_BITS = 24  # 2 MiB: most hashes of a row are rejected in the processor's cache
_CODES = 0x10000
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication by it is a bijection modulo 2**64
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)


@functools.cache
def folding() -> Uint32s:
    """Return the code point that replaces each one of the BMP in a key; 0 if it is left out.

    >>> [chr(code) for code in folding()[[ord(sign) for sign in "Ａé已"]]], folding()[ord("，")]
    (['a', 'e', '已'], np.uint32(0))
    """
    table = np.zeros(_CODES, np.uint32)
    for code in range(_CODES):
        sign = judged_form().get(code, chr(code))
        parts = [
            part
            for part in unicodedata.normalize("NFKD", sign)
            if unicodedata.category(part)[0] in "LN"
        ]
        if parts:
            folded = (parts[0] if len(parts) == 1 else chr(code)).lower()
            table[code] = ord(folded) if len(folded) == 1 else code
    return table


class Keys:
    """The keys of texts: `codes` of key i are ``codes[offsets[i]:offsets[i + 1]]``."""

    def __init__(self, text: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(text, pa.ChunkedArray):
            text = text.combine_chunks()
        self.offsets = np.zeros(len(text) + 1, np.int64)
        self.codes: Points = np.zeros(0, np.uint32)
        if len(text):
            data, offsets = string_buffers(text)
            self.codes = np.empty(int(offsets[-1] - offsets[0]), np.uint32)
            size = _fold(data, offsets, folding(), self.codes, self.offsets)
            self.codes = self.codes[:size]

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Index:
    """The keys of some benchmarks, in a table: hash → key.

    `benchmarks` are their names, in the order of the columns of `find`; `sizes` says how many
    distinct keys each has.
    """

    def __init__(self, benchmarks: Iterable[tuple[str, Iterable[pa.Array]]]) -> None:
        named = [(name, Keys(pa.chunked_array([*part], pa.string()))) for name, part in benchmarks]
        self.benchmarks = [name for name, _ in named]
        chosen = [_distinct(keys) for _, keys in named]
        self.sizes = {name: len(rows) for name, rows in zip(self.benchmarks, chosen, strict=True)}
        parts = [
            keys.codes[keys.offsets[row] : keys.offsets[row + 1]]
            for (_, keys), rows in zip(named, chosen, strict=True)
            for row in rows.tolist()
        ]
        lengths = np.array([len(part) for part in parts], np.int64)
        codes = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
        offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        owners = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
        self._keys = Known(owners.astype(np.int32), offsets, codes)
        self._table = _table(*_hashes(codes, offsets, lengths))
        short = lengths[(lengths >= SHORTEST_WINDOW) & (lengths < WINDOW)]
        self._widths = np.unique(np.r_[short, WINDOW]).astype(np.int64)

    def find(self, text: pa.Array) -> Flags:
        """Return how each text matches each benchmark, [texts, benchmarks], as flags.

        EXACT: the keys are equal. OVERLAP: one key is inside the other, a benchmark's of at least 7
        characters or the row's of at least 20. SHARED: the keys share 13 characters in a row, which
        may be a name or a formula.
        """
        keys = Keys(text)
        flags = np.zeros((len(text), len(self.benchmarks)), np.uint8)
        longest = int(np.diff(keys.offsets).max(initial=0))
        prefix, powers = np.zeros(longest + 1, np.uint64), np.ones(longest + 1, np.uint64)
        known = self._keys
        _find(keys.codes, keys.offsets, prefix, powers, self._table, self._widths, known, flags)
        return flags


class Known(NamedTuple):
    """The keys of the benchmarks: that of number k is ``codes[offsets[k]:offsets[k + 1]]``."""

    benchmark: Int32s
    offsets: Int64s
    codes: Points


class Table(NamedTuple):
    """A table of keys by the sorted hashes of their parts.

    The keys with the hash ``hashes[n]`` are ``texts[starts[n] : starts[n + 1]]``.
    """

    bloom: Uint64s
    hashes: Uint64s
    starts: Int64s
    texts: Int32s
    places: Int32s  # in the key, of a window


def _distinct(keys: Keys) -> Int64s:
    """Return the first row of each key that is long enough, in order."""
    whole = np.zeros(len(keys), np.uint64)
    _whole(keys.codes, keys.offsets, whole)
    first = np.sort(np.unique(whole, return_index=True)[1])
    return np.asarray(first[np.diff(keys.offsets)[first] >= SHORTEST], np.int64)


def _hashes(codes: Points, offsets: Int64s, lengths: Int64s) -> tuple[Uint64s, Int32s, Int32s]:
    """Return the hashes of all keys and their parts, the key of each, and its place in the key."""
    short = (lengths >= SHORTEST_WINDOW) & (lengths < WINDOW)
    counts = np.where(short, 1, np.maximum(lengths - WINDOW + 1, 0))  # of windows, by key
    bounds = np.r_[0, np.cumsum(counts)].astype(np.int32)
    whole, windows = np.zeros(len(lengths), np.uint64), np.zeros(int(bounds[-1]), np.uint64)
    _whole(codes, offsets, whole)
    _windows(codes, offsets, bounds, windows)
    owners = np.arange(len(lengths), dtype=np.int32)
    places = np.arange(len(windows)) - np.repeat(bounds[:-1], counts)
    return (
        np.r_[whole, windows],
        np.r_[owners, np.repeat(owners, counts)],
        np.r_[np.zeros_like(owners), places].astype(np.int32),
    )


@compiled
def _fold(data: Bytes, offsets: Int32s, table: Uint32s, codes: Points, ends: Int64s) -> int:
    written = 0
    for row in range(offsets.size - 1):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        while at < end:
            code, at = code_point(data, at)
            if code < _CODES:
                code = table[code]
            elif code < 0x20000:  # emoji and rare letters; above are Han characters
                code = np.uint32(0)
            if code:
                codes[written] = code
                written += 1
        ends[row + 1] = written
    return written


@inlined
def _mixed(value: np.uint64, salt: np.uint64) -> np.uint64:
    """Return a well-mixed hash."""
    value = (value + salt * _BASE) * _MIX
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return value ^ (value >> np.uint64(29))


@inlined
def _polynomial(codes: Points, start: int, stop: int) -> np.uint64:
    """Return the polynomial hash of codes[start:stop]."""
    value = np.uint64(0)
    for place in range(start, stop):
        value = value * _BASE + np.uint64(codes[place])
    return value


@compiled
def _whole(codes: Points, offsets: Int64s, out: Uint64s) -> None:
    for row in range(out.size):
        length = offsets[row + 1] - offsets[row]
        value = _polynomial(codes, offsets[row], offsets[row + 1])
        out[row] = _mixed(value, _key_salt(length))


@compiled
def _windows(codes: Points, offsets: Int64s, places: Int32s, out: Uint64s) -> None:
    for row in range(places.size - 1):
        width = min(WINDOW, offsets[row + 1] - offsets[row])
        for place in range(places[row], places[row + 1]):
            start = offsets[row] + place - places[row]
            out[place] = _mixed(_polynomial(codes, start, start + width), _window_salt(width))


# Salts keep the two kinds of hashes apart, and each length from the others.


@inlined
def _key_salt(length: int) -> np.uint64:
    """Return the salt of a whole key."""
    return np.uint64(length)


@inlined
def _window_salt(width: int) -> np.uint64:
    """Return the salt of a window."""
    return np.uint64(1 << 40) + np.uint64(width)


def _table(hashes: Uint64s, texts: Int32s, places: Int32s) -> Table:
    order = np.argsort(hashes, kind="stable")
    distinct, first = np.unique(hashes[order], return_index=True)
    bits = distinct >> np.uint64(64 - _BLOOM_BITS)
    bloom = np.zeros(1 << (_BLOOM_BITS - 6), np.uint64)
    np.bitwise_or.at(bloom, bits >> np.uint64(6), np.uint64(1) << (bits & np.uint64(63)))
    starts = np.r_[first, len(hashes)].astype(np.int64)
    return Table(bloom, distinct, starts, texts[order], places[order])


@inlined
def _look_up(table: Table, value: np.uint64) -> int:
    """Return the place of a hash in the table, or -1."""
    bit = value >> np.uint64(64 - _BLOOM_BITS)
    if not (table.bloom[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return -1
    at = np.searchsorted(table.hashes, value)
    return int(at) if at < table.hashes.size and table.hashes[at] == value else -1


@compiled
def _find(
    codes: Points,
    offsets: Int64s,
    prefix: Uint64s,
    powers: Uint64s,
    table: Table,
    widths: Int64s,
    keys: Known,
    flags: Flags,
) -> None:
    for place in range(powers.size - 1):
        powers[place + 1] = powers[place] * _BASE
    for row in range(flags.shape[0]):
        start = offsets[row]
        length = offsets[row + 1] - start
        if length < SHORTEST:
            continue
        for place in range(length):
            prefix[place + 1] = prefix[place] * _BASE + np.uint64(codes[start + place])
        at = _look_up(table, _mixed(prefix[length], _key_salt(length)))
        if at >= 0:
            for t in range(table.starts[at], table.starts[at + 1]):
                flags[row, keys.benchmark[table.texts[t]]] |= np.uint8(EXACT)
        whole = codes[start : start + length]
        for width in widths:
            salt, power = _window_salt(width), powers[width] if width <= length else np.uint64(0)
            for place in range(length - width + 1):
                value = prefix[place + width] - prefix[place] * power
                at = _look_up(table, _mixed(value, salt))
                if at >= 0:
                    for t in range(table.starts[at], table.starts[at + 1]):
                        overlap = _overlap(whole, place, keys, table.texts[t], table.places[t])
                        flags[row, keys.benchmark[table.texts[t]]] |= np.uint8(overlap)


@inlined
def _overlap(codes: Points, place: int, keys: Known, key: int, other: int) -> int:
    """Return the flags for a window at `place` of a row that is at `other` of a key."""
    first = keys.offsets[key]
    length = keys.offsets[key + 1] - first
    if other == 0 and place + length <= codes.size:
        count, at = length, place
    elif place == 0 and codes.size >= _PIECE and other + codes.size <= length:
        count, at, first = codes.size, 0, first + other
    else:
        return SHARED
    for n in range(count):
        if codes[at + n] != keys.codes[first + n]:
            return SHARED
    return OVERLAP | SHARED
