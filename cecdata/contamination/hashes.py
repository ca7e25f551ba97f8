"""Texts as hashes: enough to recognise them, and not enough to read them.

Texts are compared by their key: only letters, digits and Han characters, in lower case and without
width, accents, punctuation or spaces. For a key of n characters a list holds

- the hash of the whole key;
- `windows`: the hash of every 13 characters in a row, or of the whole key if it has 7 to 12;
- `thirds`, if n is at least 16: the hash of each third with n and its number. Two edits leave at
  least one third unchanged (Li, Deng, Wang & Feng 2011, "Pass-Join");
- `trigrams`: 32 bits of every three characters in a row, ends included, to confirm a candidate.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import compiled, inlined
from cecdata.common.kernels.utf8 import Bytes, Int32s, Points, code_point, string_buffers

Uint64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Uint32s = npt.NDArray[np.uint32]

WINDOW = 13  # the usual width in decontamination of language-model corpora
SHORTEST_WINDOW = 7  # a shorter key inside a longer text says little
SHORTEST_NEAR = 16  # a sentence of 20 characters has some punctuation, which the key lacks
SHORTEST = 3  # a shorter key, such as a label or a name, identifies nothing
EDITS = 2
_TABLE = 0x10000
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication by it is a bijection modulo 2**64
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)

# One text of a benchmark. `row` is its row from 1; both sides of a pair have the same.
HASHED = pa.schema(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("length", pa.int32(), nullable=False),
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("windows", pa.list_(pa.uint64()), nullable=False),
        pa.field("thirds", pa.list_(pa.uint64()), nullable=False),
        pa.field("trigrams", pa.list_(pa.uint32()), nullable=False),
    ]
)


@functools.cache
def folding() -> Uint32s:
    """Return the code point that replaces each one of the BMP in a key; 0 if it is left out.

    >>> [chr(code) for code in folding()[[ord(sign) for sign in "Ａé已"]]], folding()[ord("，")]
    (['a', 'e', '已'], np.uint32(0))
    """
    table = np.zeros(_TABLE, np.uint32)
    for code in range(_TABLE):
        sign = chr(code)
        parts = [
            part
            for part in unicodedata.normalize("NFKD", sign)
            if unicodedata.category(part)[0] in "LN"
        ]
        if parts:
            folded = (parts[0] if len(parts) == 1 else sign).lower()
            table[code] = ord(folded) if len(folded) == 1 else code
    return table


class Keys:
    """The keys of texts: `codes` of key i are ``codes[offsets[i]:offsets[i + 1]]``."""

    def __init__(self, text: pa.Array) -> None:
        self.offsets = np.zeros(len(text) + 1, np.int64)
        self.codes: Points = np.zeros(0, np.uint32)
        if len(text):
            data, offsets = string_buffers(text)
            self.codes = np.empty(int(offsets[-1] - offsets[0]), np.uint32)
            size = _fold(data, offsets, folding(), self.codes, self.offsets)
            self.codes = self.codes[:size]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def hashed(batches: Iterable[tuple[pa.Array, Int64s, int]], name: str) -> pa.Table:
    """Return the hashes (schema HASHED) of the texts that `contamination.texts` yields.

    Keys of fewer than three characters are left out, as are repeated keys of a row.
    """
    parts = [HASHED.empty_table()]
    for text, rows, _ in batches:
        keys = Keys(text)
        lengths = np.diff(keys.offsets)
        whole, columns = np.zeros(len(keys), np.uint64), []
        _whole(keys.codes, keys.offsets, whole)
        fills: tuple[tuple[Int64s, Any, type], ...] = (
            (_window_counts(lengths), _windows, np.uint64),
            (np.where(lengths >= SHORTEST_NEAR, EDITS + 1, 0), _thirds, np.uint64),
            (lengths + 2, _trigrams, np.uint32),
        )
        for count, fill, dtype in fills:
            offsets = np.r_[0, np.cumsum(count)].astype(np.int32)
            values: npt.NDArray[Any] = np.zeros(int(offsets[-1]), dtype)
            fill(keys.codes, keys.offsets, offsets, values)
            columns.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)))
        table = pa.table(
            [
                pa.repeat(name, len(keys)),
                pa.array(rows, pa.int64()),
                pa.array(lengths, pa.int32()),
                pa.array(whole),
                *columns,
            ],
            schema=HASHED,
        )
        kept = lengths >= SHORTEST
        pairs = np.stack([rows.astype(np.uint64), whole])
        first = np.zeros(len(keys), np.bool_)
        first[np.unique(pairs, axis=1, return_index=True)[1]] = True
        parts.append(table.filter(pa.array(kept & first)))
    return pa.concat_tables(parts).combine_chunks()


def _window_counts(lengths: Int64s) -> Int64s:
    short = (lengths >= SHORTEST_WINDOW) & (lengths < WINDOW)
    return np.where(short, 1, np.maximum(lengths - WINDOW + 1, 0))


@compiled
def _fold(data: Bytes, offsets: Int32s, table: Uint32s, codes: Points, ends: Int64s) -> int:
    written = 0
    for row in range(offsets.size - 1):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        while at < end:
            code, at = code_point(data, at)
            if code < _TABLE:
                code = table[code]
            elif code < 0x20000:  # emoji and rare letters; above are Han characters
                code = np.uint32(0)
            if code:
                codes[written] = code
                written += 1
        ends[row + 1] = written
    return written


@inlined
def mixed(value: np.uint64, salt: np.uint64) -> np.uint64:
    """Return a well-mixed hash; it is never 0, which marks a free slot."""
    value = (value + salt * BASE) * _MIX
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return (value ^ (value >> np.uint64(29))) | np.uint64(1)


@inlined
def polynomial(codes: Points, start: int, stop: int) -> np.uint64:
    """Return the polynomial hash of codes[start:stop]."""
    value = np.uint64(0)
    for place in range(start, stop):
        value = value * BASE + np.uint64(codes[place])
    return value


@inlined
def cut(length: int, third: int) -> int:
    """Return where a third of a key begins; that of number 3 is the key's end."""
    return length * third // (EDITS + 1)


@compiled
def _whole(codes: Points, offsets: Int64s, out: Uint64s) -> None:
    for row in range(out.size):
        length = offsets[row + 1] - offsets[row]
        value = polynomial(codes, offsets[row], offsets[row + 1])
        out[row] = mixed(value, key_salt(length))


@compiled
def _windows(codes: Points, offsets: Int64s, places: Int32s, out: Uint64s) -> None:
    for row in range(places.size - 1):
        width = min(WINDOW, offsets[row + 1] - offsets[row])
        for place in range(places[row], places[row + 1]):
            start = offsets[row] + place - places[row]
            out[place] = mixed(polynomial(codes, start, start + width), window_salt(width))


@compiled
def _thirds(codes: Points, offsets: Int64s, places: Int32s, out: Uint64s) -> None:
    for row in range(places.size - 1):
        length = offsets[row + 1] - offsets[row]
        for third in range(places[row + 1] - places[row]):
            start = offsets[row] + cut(length, third)
            value = polynomial(codes, start, offsets[row] + cut(length, third + 1))
            out[places[row] + third] = mixed(value, third_salt(length, third))


# Salts keep the three kinds of hashes apart, and each length from the others.


@inlined
def key_salt(length: int) -> np.uint64:
    """Return the salt of a whole key."""
    return np.uint64(length)


@inlined
def window_salt(width: int) -> np.uint64:
    """Return the salt of a window."""
    return np.uint64(1 << 40) + np.uint64(width)


@inlined
def third_salt(length: int, third: int) -> np.uint64:
    """Return the salt of a third of a key."""
    return np.uint64(1 << 41) + np.uint64(length * (EDITS + 1) + third)


@compiled
def _trigrams(codes: Points, offsets: Int64s, places: Int32s, out: Uint32s) -> None:
    for row in range(places.size - 1):
        key = codes[offsets[row] : offsets[row + 1]]
        for place in range(places[row], places[row + 1]):
            out[place] = trigram(key, place - places[row] - 2)


@inlined
def trigram(key: Points, start: int) -> np.uint32:
    """Return a 32-bit hash of three characters from `start`, which is -2 to the last place.

    A mark stands beyond each end of the key, so that an edit changes three trigrams wherever it is.
    """
    value = np.uint64(0)
    for place in range(start, start + 3):
        code = np.uint64(key[place]) if 0 <= place < key.size else np.uint64(1)
        value = value * BASE + code
    return np.uint32(mixed(value, np.uint64(3)) >> np.uint64(32))
