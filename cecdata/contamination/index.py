"""The search for texts of hash lists in rows, in time that hardly grows with the lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.kernels.jit import compiled_with, inlined
from cecdata.common.kernels.utf8 import Int32s, Points
from cecdata.contamination.hashes import (
    BASE,
    EDITS,
    SHORTEST,
    SHORTEST_NEAR,
    SHORTEST_WINDOW,
    WINDOW,
    Int64s,
    Keys,
    Uint32s,
    Uint64s,
    cut,
    key_salt,
    mixed,
    third_salt,
    trigram,
    window_salt,
)

EXACT, OVERLAP, NEAR, SHARED = 1, 2, 4, 8
CONTAMINATED = EXACT | OVERLAP | NEAR
_PIECE = 20  # characters: a shorter row inside a benchmark's text may be a name or a formula
_BLOOM_BITS = 24  # 2 MiB: most hashes of a row are rejected in the processor's cache

Flags = npt.NDArray[np.uint8]


class Index:
    """Hash lists (schema HASHED) in an open-addressing table: hash → text of a benchmark.

    `benchmarks` are their names, in the order of the columns of `find`.
    """

    def __init__(self, lists: Sequence[pa.Table]) -> None:
        table = pa.concat_tables(lists).combine_chunks()
        names = table.column("benchmark").combine_chunks().dictionary_encode()
        self.benchmarks: list[str] = names.dictionary.to_pylist()
        self._benchmark = np.asarray(names.indices).astype(np.int32)
        self._lengths = np.asarray(table.column("length")).astype(np.int32)
        texts = np.arange(len(table), dtype=np.int32)
        hashes, owners, places = [np.asarray(table.column("key"))], [texts], [np.zeros_like(texts)]
        for name in ("windows", "thirds"):
            column = table.column(name).combine_chunks()
            counts = np.asarray(pc.list_value_length(column))
            hashes.append(np.asarray(column.flatten()))
            owners.append(np.repeat(texts, counts))
            starts = np.repeat(np.cumsum(counts) - counts, counts)
            places.append((np.arange(len(starts)) - starts).astype(np.int32))
        self._table = _table(*(np.concatenate(parts) for parts in (hashes, owners, places)))
        trigrams = table.column("trigrams").combine_chunks()
        self._trigrams = np.asarray(trigrams.flatten())
        counts = np.asarray(pc.list_value_length(trigrams))
        self._starts = np.r_[0, np.cumsum(counts)].astype(np.int64)
        short = self._lengths[(self._lengths >= SHORTEST_WINDOW) & (self._lengths < WINDOW)]
        self._widths = np.unique(np.r_[short, WINDOW]).astype(np.int64)

    def find(self, text: pa.Array) -> Flags:
        """Return how each text matches each benchmark, [texts, benchmarks], as flags.

        EXACT: the keys are equal. OVERLAP: one key is inside the other, a benchmark's of at least 7
        characters or the row's of at least 20. NEAR: the keys differ by up to two edits, and the
        benchmark's has at least 16 characters. SHARED: the keys share 13 characters in a row, which
        may be a name or a formula.
        """
        keys = Keys(text)
        flags = np.zeros((len(text), len(self.benchmarks)), np.uint8)
        longest = int(np.diff(keys.offsets).max(initial=0))
        prefix, powers = np.zeros(longest + 1, np.uint64), np.ones(longest + 1, np.uint64)
        texts = Texts(self._benchmark, self._lengths, self._starts, self._trigrams)
        _find(keys.codes, keys.offsets, prefix, powers, self._table, self._widths, texts, flags)
        return flags


class Table(NamedTuple):
    """A hash table of texts by the hashes of their parts.

    The texts with the hash ``slots[s]`` are ``texts[starts[at[s]] : starts[at[s] + 1]]``.
    """

    bloom: Uint64s
    slots: Uint64s  # 0: free
    at: Int32s
    starts: Int64s
    texts: Int32s
    places: Int32s  # in the text, of a window


class Texts(NamedTuple):
    """The facts of each text of the lists."""

    benchmark: Int32s
    length: Int32s
    starts: Int64s
    trigrams: Uint32s


def _table(hashes: Uint64s, texts: Int32s, places: Int32s) -> Table:
    order = np.argsort(hashes, kind="stable")
    distinct, first = np.unique(hashes[order], return_index=True)
    size = 1 << max(4, int(2 * len(distinct)).bit_length())
    slots, at = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    bloom = np.zeros(1 << (_BLOOM_BITS - 6), np.uint64)
    _fill(distinct, slots, at, bloom)
    starts = np.r_[first, len(hashes)]
    return Table(bloom, slots, at, starts, texts[order], places[order])


@compiled_with()
def _fill(hashes: Uint64s, slots: Uint64s, at: Int32s, bloom: Uint64s) -> None:
    mask = np.uint64(slots.size - 1)
    for place in range(hashes.size):
        value = hashes[place]
        bit = value >> np.uint64(64 - _BLOOM_BITS)
        bloom[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
        slot = (value >> np.uint64(1)) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot], at[slot] = value, place


@inlined
def _look_up(table: Table, value: np.uint64) -> int:
    """Return the place of a hash in `starts`, or -1."""
    bit = value >> np.uint64(64 - _BLOOM_BITS)
    if not (table.bloom[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return -1
    mask = np.uint64(table.slots.size - 1)
    slot = (value >> np.uint64(1)) & mask
    while table.slots[slot] != 0:
        if table.slots[slot] == value:
            return int(table.at[slot])
        slot = (slot + np.uint64(1)) & mask
    return -1


@compiled_with()
def _find(
    codes: Points,
    offsets: Int64s,
    prefix: Uint64s,
    powers: Uint64s,
    table: Table,
    widths: Int64s,
    texts: Texts,
    flags: Flags,
) -> None:
    for place in range(powers.size - 1):
        powers[place + 1] = powers[place] * BASE
    for row in range(flags.shape[0]):
        start = offsets[row]
        length = offsets[row + 1] - start
        if length < SHORTEST:
            continue
        for place in range(length):
            prefix[place + 1] = prefix[place] * BASE + np.uint64(codes[start + place])
        at = _look_up(table, mixed(prefix[length], key_salt(length)))
        if at >= 0:
            for t in range(table.starts[at], table.starts[at + 1]):
                flags[row, texts.benchmark[table.texts[t]]] |= np.uint8(EXACT)
        whole = codes[start : start + length]
        for width in widths:
            salt, power = window_salt(width), powers[width] if width <= length else np.uint64(0)
            for place in range(length - width + 1):
                value = prefix[place + width] - prefix[place] * power
                at = _look_up(table, mixed(value, salt))
                if at >= 0:
                    for t in range(table.starts[at], table.starts[at + 1]):
                        overlap = _overlap(whole, place, texts, table.texts[t], table.places[t])
                        flags[row, texts.benchmark[table.texts[t]]] |= np.uint8(overlap)
        _near(whole, prefix, powers, table, texts, flags[row])


@inlined
def _overlap(codes: Points, place: int, texts: Texts, text: int, other: int) -> int:
    """Return the flags for a window at `place` of a row that is at `other` of a text."""
    length = texts.length[text]
    first = texts.starts[text] + other + 2  # two trigrams begin before the key
    if other == 0 and place + length <= codes.size:
        count = length - 2
    elif place == 0 and codes.size >= _PIECE and other + codes.size <= length:
        count = codes.size - 2
    else:
        return SHARED
    for n in range(count):
        if trigram(codes, place + n) != texts.trigrams[first + n]:
            return SHARED
    return OVERLAP | SHARED


@inlined
def _near(
    codes: Points, prefix: Uint64s, powers: Uint64s, table: Table, texts: Texts, flags: Flags
) -> None:
    """Flag the benchmarks with a text that differs by up to EDITS edits."""
    for length in range(max(SHORTEST_NEAR, codes.size - EDITS), codes.size + EDITS + 1):
        for third in range(EDITS + 1):
            start, stop = cut(length, third), cut(length, third + 1)
            salt, power = third_salt(length, third), powers[stop - start]
            for shift in range(-EDITS, EDITS + 1):
                if start + shift < 0 or stop + shift > codes.size:
                    continue
                value = prefix[stop + shift] - prefix[start + shift] * power
                at = _look_up(table, mixed(value, salt))
                if at < 0:
                    continue
                for t in range(table.starts[at], table.starts[at + 1]):
                    text = table.texts[t]
                    known = flags[texts.benchmark[text]] & np.uint8(EXACT | NEAR)
                    if (
                        not known
                        and texts.length[text] == length
                        and _confirmed(codes, texts, text)
                    ):
                        flags[texts.benchmark[text]] |= np.uint8(NEAR)


@inlined
def _confirmed(codes: Points, texts: Texts, text: int) -> bool:
    """Return whether EDITS edits can explain a text's trigrams that are missing near their place.

    An edit changes at most three trigrams and moves the others by at most one place.
    """
    first, count = texts.starts[text], texts.starts[text + 1] - texts.starts[text]
    missing = 0
    for place in range(count):
        wanted, present = texts.trigrams[first + place], False
        for other in range(max(0, place - EDITS), min(codes.size + 2, place + EDITS + 1)):
            present = present or trigram(codes, other - 2) == wanted
        missing += not present
        if missing > 3 * EDITS:
            return False
    return True
