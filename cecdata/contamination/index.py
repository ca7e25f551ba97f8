"""The search for texts of benchmarks in rows, in time that hardly grows with the benchmarks.

Texts are compared by their key: only letters, digits and Han characters, in lower case and without
width, accents, punctuation or spaces. A key of n characters is found by the hash of

- the whole key;
- a window: every 13 characters in a row.

A benchmark's key inside a row is found by the hash of the whole key, a row inside a benchmark by
its windows, which the benchmark must all have. Hashes have 64 bits, so equal ones mean equal texts.
The time is linear in the size of the rows.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels import (
    Bytes,
    Int32s,
    Points,
    Uint64s,
    compiled,
    entry_with,
    inlined,
    read_code_point,
    view_string_buffers,
)
from cecdata.corpus.normalise import map_forms

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
def make_folding_table() -> Uint32s:
    """Return the code point that replaces each one of the BMP in a key; 0 if it is left out."""
    table = np.zeros(_CODES, np.uint32)
    for code in range(_CODES):
        sign = map_forms().get(code, chr(code))
        # without accents, which are parts of their own
        decomposed = unicodedata.normalize("NFKD", sign)
        letters = [part for part in decomposed if unicodedata.category(part)[0] in "LN"]
        if letters:
            folded = (letters[0] if len(letters) == 1 else chr(code)).lower()
            table[code] = ord(folded) if len(folded) == 1 else code
    return table


class Keys:
    """The keys of texts: `codes` of key i are ``codes[offsets[i]:offsets[i + 1]]``."""

    def __init__(self, text: pa.Array) -> None:
        self.offsets = np.zeros(len(text) + 1, np.int64)
        self.codes: Points = np.zeros(0, np.uint32)
        if len(text):
            data, offsets = view_string_buffers(text)
            self.codes = np.empty(int(offsets[-1] - offsets[0]), np.uint32)
            size = _fold_texts(data, offsets, make_folding_table(), self.codes, self.offsets)
            self.codes = self.codes[:size]


class Index:
    """The keys of some benchmarks, in a table: hash → benchmarks.

    `benchmarks`: names, one for each column that `find` returns; `sizes` says how many distinct
    keys each has.
    """

    def __init__(self, benchmarks: Iterable[tuple[str, Iterable[pa.Array]]]) -> None:
        self.sizes: dict[str, int] = {}
        hashes, owners, lengths = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], set[int]()
        for number, (name, texts) in enumerate(benchmarks):
            seen: set[int] = set()
            for text in texts:  # one at a time: a small file may have many equal rows
                keys = Keys(text)
                rows = _find_new(keys, seen)
                lengths.update(np.diff(keys.offsets)[rows].tolist())
                hashes.append(_hash_parts(keys, rows))
                owners.append(np.full(len(hashes[-1]), number))
            self.sizes[name] = len(seen)
        self.benchmarks = list(self.sizes)
        self._table = _make_table(np.concatenate(hashes), np.concatenate(owners), lengths)

    def find(self, text: pa.Array) -> Flags:
        """Return how each text matches each benchmark, [texts, benchmarks], as flags.

        EXACT: the keys are equal. OVERLAP: a benchmark's key of at least 7 characters is inside the
        row's, or the row's key has at least 20 characters and the benchmark has each 13 of them in
        a row. SHARED: the keys share 13 characters in a row, which may be a name or a formula.
        """
        keys = Keys(text)
        flags = np.zeros((len(text), len(self.benchmarks)), np.uint8)
        longest = int(np.diff(keys.offsets).max(initial=0))
        prefix, powers = np.zeros(longest + 1, np.uint64), np.ones(longest + 1, np.uint64)
        windows = np.zeros(len(self.benchmarks), np.int64)
        _flag_rows(keys.codes, keys.offsets, prefix, powers, windows, self._table, flags)
        return flags


class Table(NamedTuple):
    """Hashes of the benchmarks' keys and windows, sorted, and the benchmarks that have each.

    The hash ``hashes[n]`` is in the benchmarks ``owners[starts[n] : starts[n + 1]]``.
    """

    short: Int64s  # lengths of keys that are shorter than a window
    long: Int64s  # lengths of the other keys
    bloom: Uint64s  # a bitmap of the upper _BLOOM_BITS bits of the hashes
    hashes: Uint64s
    starts: Int64s
    owners: Int64s


def _find_new(keys: Keys, seen: set[int]) -> npt.NDArray[np.int64]:
    """Return the first row of each key that is long enough and not seen yet, in order."""
    sizes = np.diff(keys.offsets)
    hashes = np.zeros(len(sizes), np.uint64)
    _hash_stretches(keys.codes, keys.offsets, sizes, sizes, hashes)
    first = np.sort(np.unique(hashes, return_index=True)[1])
    rows = [n for n in first[sizes[first] >= SHORTEST].tolist() if int(hashes[n]) not in seen]
    seen.update(hashes[rows].tolist())
    return np.array(rows, np.int64)


def _hash_parts(keys: Keys, rows: npt.NDArray[np.int64]) -> Uint64s:
    """Return the hashes of these rows' keys, and of all their windows."""
    starts, sizes = keys.offsets[rows], np.diff(keys.offsets)[rows]
    counts = np.maximum(sizes - WINDOW + 1, 0)  # of windows, by key
    # 0, 1, 2 … within each key
    shifts = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    all_starts = np.r_[starts, np.repeat(starts, counts) + shifts]
    widths = np.r_[sizes, np.full_like(shifts, WINDOW)]
    salts = np.r_[sizes, np.full_like(shifts, _WINDOW_SALT)]
    hashes = np.zeros(len(widths), np.uint64)
    _hash_stretches(keys.codes, all_starts, widths, salts, hashes)
    return hashes


@compiled
def _fold_texts(data: Bytes, offsets: Int32s, table: Uint32s, codes: Points, ends: Int64s) -> int:
    """Write the keys of texts to `codes`, and where each ends to `ends`; return their length."""
    written = 0
    for row in range(offsets.size - 1):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        while at < end:
            code, at = read_code_point(data, at)
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
def _mix(value: np.uint64, salt: int) -> np.uint64:
    """Return a well-mixed hash; the salt of a whole key is its length, so that these differ."""
    value = (value + np.uint64(salt) * _BASE) * _MIX
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return value ^ (value >> np.uint64(29))


@compiled
def _hash_stretches(
    codes: Points, starts: Int64s, sizes: Int64s, salts: Int64s, out: Uint64s
) -> None:
    """Write the hash of codes[starts[n] : starts[n] + sizes[n]], with salts[n], to out[n]."""
    for n in range(out.size):
        value = np.uint64(0)
        for i in range(starts[n], starts[n] + sizes[n]):
            value = value * _BASE + np.uint64(codes[i])
        out[n] = _mix(value, salts[n])


def _make_table(hashes: Uint64s, owners: Int64s, lengths: Collection[int]) -> Table:
    """Return the table of hashes and the benchmarks that own them; `lengths` are of the keys."""
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    is_new = np.r_[True, (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])][: len(hashes)]
    hashes, owners = hashes[is_new], owners[is_new]
    distinct, starts = np.unique(hashes, return_index=True)
    bits = distinct >> np.uint64(64 - _BLOOM_BITS)
    bloom = np.zeros(1 << (_BLOOM_BITS - 6), np.uint64)
    np.bitwise_or.at(bloom, bits >> np.uint64(6), np.uint64(1) << (bits & np.uint64(63)))
    sizes = np.array(sorted(lengths), np.int64)
    short, long = sizes[(sizes >= SHORTEST_WINDOW) & (sizes < WINDOW)], sizes[sizes >= WINDOW]
    return Table(short, long, bloom, distinct, np.r_[starts, len(hashes)], owners)


@inlined
def _look_up(table: Table, value: np.uint64) -> int:
    """Return the place of a hash in the table, or -1."""
    bit = value >> np.uint64(64 - _BLOOM_BITS)
    if not (table.bloom[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return -1
    at = np.searchsorted(table.hashes, value)
    return int(at) if at < table.hashes.size and table.hashes[at] == value else -1


@entry_with()
def _flag_rows(
    codes: Points,
    offsets: Int64s,
    prefix: Uint64s,
    powers: Uint64s,
    windows: Int64s,
    table: Table,
    flags: Flags,
) -> None:
    """Write to `flags` how each row matches each benchmark; the other arrays are for its work.

    prefix[n] is the hash of the row's first n characters without a salt, powers[n] is _BASE ** n,
    and windows[b] is the number of the row's windows that benchmark b has.
    """
    for place in range(powers.size - 1):
        powers[place + 1] = powers[place] * _BASE
    for row in range(flags.shape[0]):
        key, row_flags = codes[offsets[row] : offsets[row + 1]], flags[row]
        length = key.size
        if length < SHORTEST:
            continue
        for place in range(length):
            prefix[place + 1] = prefix[place] * _BASE + np.uint64(key[place])
        whole = _hash_piece(prefix, powers, 0, length, length)
        _set_flag(row_flags, table, _look_up(table, whole), EXACT)
        for size in table.short:
            for place in range(length - size + 1):
                piece = _hash_piece(prefix, powers, place, size, size)
                _set_flag(row_flags, table, _look_up(table, piece), OVERLAP)
        windows[:] = 0
        for place in range(length - WINDOW + 1):
            window = _look_up(table, _hash_piece(prefix, powers, place, WINDOW, _WINDOW_SALT))
            if window < 0:
                continue
            _set_flag(row_flags, table, window, SHARED)
            for group in range(table.starts[window], table.starts[window + 1]):
                windows[table.owners[group]] += 1
            for size in table.long:  # a key that begins here has this window
                if place + size > length:
                    break
                piece = _hash_piece(prefix, powers, place, size, size)
                _set_flag(row_flags, table, _look_up(table, piece), OVERLAP)
        for benchmark in range(windows.size):
            if length >= _PIECE and windows[benchmark] == length - WINDOW + 1:
                row_flags[benchmark] |= np.uint8(OVERLAP)


@inlined
def _hash_piece(prefix: Uint64s, powers: Uint64s, start: int, size: int, salt: int) -> np.uint64:
    """Return the hash of `size` characters of a row, as `_hash_stretches` computes it."""
    # key[a:b] has the hash of key[:b] less that of key[:a], moved by b - a characters
    return _mix(prefix[start + size] - prefix[start] * powers[size], salt)


@inlined
def _set_flag(row_flags: Flags, table: Table, at: int, flag: int) -> None:
    """Set a flag of each benchmark that has the hash at a place of the table; -1 is none."""
    if at >= 0:
        for group in range(table.starts[at], table.starts[at + 1]):
            row_flags[table.owners[group]] |= np.uint8(flag)
