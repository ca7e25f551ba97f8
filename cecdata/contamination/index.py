"""The search for texts of benchmarks in rows, in time that hardly grows with the benchmarks.

Texts are compared by their key: only letters, digits and Han characters, in lower case and without
width, accents, punctuation or spaces. A key of n characters is found by the hash of

- the whole key;
- a window: every 13 characters in a row.

A key inside a row is found by the hash of the whole key, a row inside a key by its rarest window;
both are then compared character by character. So the time is linear in the size of the rows, and a
text of equal characters takes no longer than another.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import called, compiled, entry, inlined
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
_WINDOW_SALT = 0  # no key has this length


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
        self.sizes: dict[str, int] = {}
        parts: list[Points] = []
        for name, texts in benchmarks:
            before, seen = len(parts), set[int]()
            for text in texts:  # one at a time: a small file may have many equal rows
                keys = Keys(text)
                bounds = keys.offsets
                parts += (keys.codes[bounds[n] : bounds[n + 1]].copy() for n in _new(keys, seen))
            self.sizes[name] = len(parts) - before
        self.benchmarks = list(self.sizes)
        codes = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
        offsets = np.r_[0, np.cumsum([len(part) for part in parts])].astype(np.int64)
        owners = np.repeat(np.arange(len(self.sizes)), [*self.sizes.values()])
        self._table = _table(owners.astype(np.int32), offsets, codes)

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
        _find(keys.codes, keys.offsets, prefix, powers, self._table, flags)
        return flags


class Table(NamedTuple):
    """The keys of the benchmarks, and a table of them by the sorted hashes of their parts.

    Key k is ``codes[offsets[k] : offsets[k + 1]]`` of the benchmark ``owners[k]``. The hash
    ``hashes[n]`` has the groups ``starts[n]`` to ``starts[n + 1]``, one for each benchmark. Group g
    has the parts ``parts[g]`` to ``parts[g + 1]``; `texts` has the key of each, `places` its place
    there. Keys that begin with the hash have ``lengths[begins[n] : begins[n + 1]]`` characters.
    """

    owners: Int32s
    offsets: Int64s
    codes: Points
    short: Int64s  # lengths of keys that are shorter than a window
    bloom: Uint64s
    hashes: Uint64s
    starts: Int64s
    parts: Int64s
    texts: Int32s
    places: Int32s
    begins: Int64s
    lengths: Int64s


def _new(keys: Keys, seen: set[int]) -> list[int]:
    """Return the first row of each key that is long enough and not seen yet, in order."""
    sizes = np.diff(keys.offsets)
    whole = np.zeros(len(keys), np.uint64)
    _hash(keys.codes, keys.offsets, sizes, sizes, whole)
    first = np.sort(np.unique(whole, return_index=True)[1])
    rows = [n for n in first[sizes[first] >= SHORTEST].tolist() if int(whole[n]) not in seen]
    seen.update(whole[rows].tolist())
    return rows


def _hashes(codes: Points, offsets: Int64s) -> tuple[Uint64s, Int32s, Int32s]:
    """Return the hashes of all keys and their windows, the key of each, and its place there."""
    sizes = np.diff(offsets)
    counts = np.maximum(sizes - WINDOW + 1, 0)  # of windows, by key
    number = np.arange(counts.sum())
    places = np.r_[np.zeros_like(sizes), number - np.repeat(np.cumsum(counts) - counts, counts)]
    keys = np.arange(len(sizes))
    keys = np.r_[keys, np.repeat(keys, counts)]
    widths, salts = (np.r_[sizes, np.full_like(number, salt)] for salt in (WINDOW, _WINDOW_SALT))
    hashes = np.zeros(len(keys), np.uint64)
    _hash(codes, offsets[keys] + places, widths, salts, hashes)
    return hashes, keys.astype(np.int32), places.astype(np.int32)


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
def _mixed(value: np.uint64, salt: int) -> np.uint64:
    """Return a well-mixed hash; the salt of a whole key is its length, so that these differ."""
    value = (value + np.uint64(salt) * _BASE) * _MIX
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return value ^ (value >> np.uint64(29))


@compiled
def _hash(codes: Points, starts: Int64s, sizes: Int64s, salts: Int64s, out: Uint64s) -> None:
    for n in range(out.size):
        value = np.uint64(0)
        for place in range(starts[n], starts[n] + sizes[n]):
            value = value * _BASE + np.uint64(codes[place])
        out[n] = _mixed(value, salts[n])


def _table(owners: Int32s, offsets: Int64s, codes: Points) -> Table:
    hashes, texts, places = _hashes(codes, offsets)
    order = np.argsort(hashes, kind="stable")
    texts, places = texts[order], places[order]
    distinct, slots = np.unique(hashes[order], return_inverse=True)
    bits = distinct >> np.uint64(64 - _BLOOM_BITS)
    bloom = np.zeros(1 << (_BLOOM_BITS - 6), np.uint64)
    np.bitwise_or.at(bloom, bits >> np.uint64(6), np.uint64(1) << (bits & np.uint64(63)))
    parts = np.flatnonzero(np.diff(slots, prepend=-1) | np.diff(owners[texts], prepend=-1))
    numbers = np.arange(len(distinct) + 1)
    starts = np.searchsorted(slots[parts], numbers)
    parts = np.r_[parts, len(hashes)]
    first, sizes = places == 0, np.diff(offsets)
    lengths = np.unique(slots[first] << 32 | sizes[texts[first]])
    begins = np.searchsorted(lengths >> 32, numbers)
    lengths &= 0xFFFFFFFF
    short = np.unique(sizes[(sizes >= SHORTEST_WINDOW) & (sizes < WINDOW)])
    found = (bloom, distinct, starts, parts, texts, places, begins, lengths)
    return Table(owners, offsets, codes, short, *found)


@inlined
def _look_up(table: Table, value: np.uint64) -> int:
    """Return the place of a hash in the table, or -1."""
    bit = value >> np.uint64(64 - _BLOOM_BITS)
    if not (table.bloom[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return -1
    at = np.searchsorted(table.hashes, value)
    return int(at) if at < table.hashes.size and table.hashes[at] == value else -1


@entry
def _find(
    codes: Points, offsets: Int64s, prefix: Uint64s, powers: Uint64s, table: Table, flags: Flags
) -> None:
    for place in range(powers.size - 1):
        powers[place + 1] = powers[place] * _BASE
    for row in range(flags.shape[0]):
        whole, found = codes[offsets[row] : offsets[row + 1]], flags[row]
        length = whole.size
        if length < SHORTEST:
            continue
        for place in range(length):
            prefix[place + 1] = prefix[place] * _BASE + np.uint64(whole[place])
        at = _look_up(table, _mixed(prefix[length], length))
        if at >= 0:
            _flag(found, table, at, EXACT)
        for size in table.short:
            for place in range(length - size + 1):
                value = prefix[place + size] - prefix[place] * powers[size]
                _find_key(found, table, whole[place : place + size], value)
        windows, rare, rare_place, fewest = 0, 0, 0, 0
        for place in range(length - WINDOW + 1):
            value = prefix[place + WINDOW] - prefix[place] * powers[WINDOW]
            at = _look_up(table, _mixed(value, _WINDOW_SALT))
            if at < 0:
                continue
            windows += 1
            parts = table.parts[table.starts[at + 1]] - table.parts[table.starts[at]]
            if windows == 1 or parts < fewest:
                rare, rare_place, fewest = at, place, parts
            if _flag(found, table, at, SHARED):
                for size in table.lengths[table.begins[at] : table.begins[at + 1]]:
                    if place + size <= length:
                        value = prefix[place + size] - prefix[place] * powers[size]
                        _find_key(found, table, whole[place : place + size], value)
        if length >= _PIECE and windows == length - WINDOW + 1:
            _compare(found, table, rare, whole, rare_place)


@inlined
def _find_key(found: Flags, table: Table, codes: Points, value: np.uint64) -> None:
    """Look for a part of a row, with this polynomial hash, among the whole keys."""
    at = _look_up(table, _mixed(value, codes.size))
    if at >= 0:
        _compare(found, table, at, codes, 0)


@inlined
def _flag(found: Flags, table: Table, at: int, flag: int) -> bool:
    """Set a flag of each benchmark that has a hash; return whether one of them lacks OVERLAP."""
    wanted = False
    for group in range(table.starts[at], table.starts[at + 1]):
        benchmark = table.owners[table.texts[table.parts[group]]]
        found[benchmark] |= np.uint8(flag)
        wanted |= not found[benchmark] & np.uint8(OVERLAP)
    return wanted


@called
def _compare(found: Flags, table: Table, at: int, codes: Points, place: int) -> None:
    """Flag each benchmark that has `codes`, which have the hash `at` at `place`."""
    for group in range(table.starts[at], table.starts[at + 1]):
        benchmark = table.owners[table.texts[table.parts[group]]]
        for part in range(table.parts[group], table.parts[group + 1]):
            if found[benchmark] & np.uint8(OVERLAP):
                break
            key = table.texts[part]
            first = table.offsets[key] + table.places[part] - place
            stop = first + codes.size
            same = first >= table.offsets[key] and stop <= table.offsets[key + 1]
            n = 0
            while same and n < codes.size:
                same = codes[n] == table.codes[first + n]
                n += 1
            if same:
                found[benchmark] |= np.uint8(OVERLAP | SHARED)
