"""Near-duplicates: sentences that differ by a few characters from an earlier one.

Two sentences are near-duplicates if their Levenshtein distance is at most k = min(3, length // 10)
of the shorter one; sentences under ten characters have none. If a sentence of length L is cut into
k + 1 segments, one of them is unchanged in every near-duplicate, moved by at most k positions
(Li et al., Pass-Join, PVLDB 5, 2011). So each kept sentence is filed under its segments, and for a
new one its substrings of those lengths at those positions are looked up. A fingerprint of the
characters and then the distance decide. Unlike MinHash, this misses no pair, unless more than 4,096
kept sentences of one length share a segment: then only the latest 4,096 are compared.

Memory: about 120 bytes and the UTF-8 of each kept sentence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import compiled, inlined
from cecdata.common.kernels.utf8 import decode, string_buffers

Int64s = npt.NDArray[np.int64]

MOST_EDITS = 3
CHARS_AN_EDIT = 10  # of the shorter sentence
_SEGMENTS = MOST_EDITS + 1
_FILL = 0.6  # of the table of segments
_LONGEST_CHAIN = 4096  # most sentences of one length with one segment that are compared
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)


class NearDuplicates:
    """The sentences that were kept so far.

    >>> seen = NearDuplicates()
    >>> rows, edits = seen.first(pa.array(["我们明天一起去公园看花", "我们明天一起去公园看画"]))
    >>> rows.tolist(), edits.tolist(), seen.text(0)
    ([-1, 0], [-1, 1], '我们明天一起去公园看花')
    """

    def __init__(self) -> None:
        self._rows = 0
        self._bytes = np.zeros(1 << 16, np.uint8)  # UTF-8 of the kept sentences
        self._ends = np.zeros(1 << 10, np.int64)  # of each in `_bytes`
        self._signs = np.zeros(1 << 10, np.uint64)  # parities of the characters' hashes
        self._lengths = np.zeros(1 << 10, np.int32)
        self._next = np.zeros((1 << 10, _SEGMENTS), np.int32)  # the sentence filed before it
        self._keys = np.zeros(1 << 13, np.uint64)  # hashes of segments; 0: free
        self._heads = np.full(1 << 13, -1, np.int32)  # the latest sentence with the segment
        self._used = np.zeros(1, np.int64)  # slots of `_keys`

    def first(self, text: pa.Array) -> tuple[Int64s, Int64s]:
        """Return, for each sentence, the kept one that it is near to, and the distance from it.

        Both are -1 where there is none: then the sentence is kept, and later ones, also in `text`,
        are compared with it. Sentences are numbered in the order in which they are kept.
        """
        data, bounds = string_buffers(text)
        self._reserve(len(text), int(bounds[-1] - bounds[0]))
        near, edits = np.empty((2, len(text)), np.int64)
        state = (self._bytes, self._ends, self._signs, self._lengths, self._next)
        table = (self._keys, self._heads, self._used)
        self._rows = _first(data, bounds, near, edits, self._rows, *state, *table)
        return near, edits

    def text(self, row: int) -> str:
        """Return a kept sentence of at least ten characters; shorter ones have no number."""
        start = int(self._ends[row - 1]) if row else 0
        return self._bytes[start : int(self._ends[row])].tobytes().decode("utf-8")

    def _reserve(self, sentences: int, size: int) -> None:
        rows = self._rows + sentences
        last = int(self._ends[self._rows - 1]) if self._rows else 0
        room = {"_ends": rows, "_signs": rows, "_lengths": rows, "_next": rows}
        for name, count in {"_bytes": last + size, **room}.items():
            setattr(self, name, _grown(getattr(self, name), count))
        slots = len(self._keys)
        while int(self._used[0]) + _SEGMENTS * sentences > _FILL * slots:
            slots *= 2
        if slots > len(self._keys):
            keys, heads = np.zeros(slots, np.uint64), np.full(slots, -1, np.int32)
            _refile(self._keys, self._heads, keys, heads)
            self._keys, self._heads = keys, heads


def _grown(array: npt.NDArray[np.generic], size: int) -> npt.NDArray[np.generic]:
    if len(array) >= size:
        return array
    grown = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


@inlined
def _most_edits(length):
    return min(MOST_EDITS, length // CHARS_AN_EDIT)


@inlined
def _slot(keys, key):
    """Return the slot of a key, or the free one where it belongs."""
    mask = np.uint64(keys.size - 1)
    place = (key ^ (key >> np.uint64(29))) & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + np.uint64(1)) & mask
    return place


@inlined
def _key(sums, powers, start, stop, length, segment):
    """Return the hash, never 0, of points[start:stop] as a segment of a sentence of `length`."""
    value = sums[stop] - sums[start] * powers[stop - start]
    value ^= np.uint64(length * _SEGMENTS + segment + 1) * _MIX
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return (value ^ (value >> np.uint64(29))) | np.uint64(1)


@compiled
def _refile(keys, heads, new_keys, new_heads):
    """Copy the keys of a table into a larger one."""
    for old in range(keys.size):
        if keys[old] != 0:
            place = _slot(new_keys, keys[old])
            new_keys[place], new_heads[place] = keys[old], heads[old]


@inlined
def _ones(value):
    """Return the number of ones in a 64-bit word."""
    value -= (value >> np.uint64(1)) & np.uint64(0x5555555555555555)
    four = np.uint64(0x3333333333333333)
    value = (value & four) + ((value >> np.uint64(2)) & four)
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (value * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inlined
def _distance(one, n, other, m, most, rows):
    """Return the Levenshtein distance of one[:n] and other[:m], or most + 1 if it is greater."""
    before, row, limit = rows[0], rows[1], most + 1
    for j in range(min(m, most) + 1):
        before[j] = j
    for i in range(1, n + 1):
        low, high = max(1, i - most), min(m, i + most)
        row[low - 1] = i if low == 1 else limit
        if i - 1 + most < m:
            before[i + most] = limit  # outside the band of the row before
        least = row[low - 1]
        for j in range(low, high + 1):
            best = before[j - 1] + (one[i - 1] != other[j - 1])
            best = min(best, before[j] + 1, row[j - 1] + 1)
            row[j] = best
            least = min(least, best)
        if least > most:
            return limit
        before, row = row, before
    return min(before[m], limit)


@compiled
def _first(
    data, bounds, near, edits, rows, texts, ends, signs, lengths, following, keys, heads, used
):
    """Write the sentence that each is near to, and file it if there is none; see `NearDuplicates`.

    Return the number of sentences filed so far.
    """
    longest = 1
    for t in range(near.size):
        longest = max(longest, bounds[t + 1] - bounds[t])
    points, other = np.empty(longest, np.uint32), np.empty(longest + 64, np.uint32)
    sums, powers = np.zeros(longest + 1, np.uint64), np.ones(longest + 1, np.uint64)
    work = np.zeros((2, longest + 64), np.int64)
    for i in range(longest):
        powers[i + 1] = powers[i] * _BASE
    for t in range(near.size):
        start, stop = np.int64(bounds[t]), np.int64(bounds[t + 1])
        n = decode(data, start, stop, points)
        sign = np.uint64(0)
        for i in range(n):
            mixed = (np.uint64(points[i]) + np.uint64(1)) * _MIX
            mixed ^= mixed >> np.uint64(32)
            sums[i + 1] = sums[i] * _BASE + mixed
            sign ^= np.uint64(1) << ((mixed * _BASE) >> np.uint64(58))
        most = _most_edits(n)
        found = apart = np.int64(-1)
        for length in range(n - most, n + most + 1):
            allowed = min(most, _most_edits(length))
            if allowed == 0 or abs(n - length) > allowed or found >= 0:
                continue
            pieces = _most_edits(length) + 1
            for s in range(pieces):
                begin = s * length // pieces
                size = (s + 1) * length // pieces - begin
                for shift in range(-allowed, allowed + 1):
                    # the part before the segment needs |shift| edits, the part after it the rest
                    at = begin + shift
                    if (
                        abs(shift) + abs(n - length - shift) > allowed
                        or at < 0
                        or at + size > n
                        or found >= 0
                    ):
                        continue
                    key = _key(sums, powers, at, at + size, length, s)
                    row = heads[_slot(keys, key)]
                    seen = 0
                    while row >= 0 and found < 0 and seen < _LONGEST_CHAIN:
                        seen += 1
                        if lengths[row] == length and _ones(sign ^ signs[row]) <= 2 * allowed:
                            before = ends[row - 1] if row else np.int64(0)
                            m = decode(texts, before, ends[row], other)
                            apart = _distance(points, n, other, m, allowed, work)
                            if apart <= allowed:
                                found = np.int64(row)
                        row = following[row, s]
        near[t], edits[t] = found, apart if found >= 0 else -1
        if found < 0 and most > 0:
            last = ends[rows - 1] if rows else np.int64(0)
            texts[last : last + stop - start] = data[start:stop]
            ends[rows], signs[rows], lengths[rows] = last + stop - start, sign, n
            for s in range(most + 1):
                begin, end = s * n // (most + 1), (s + 1) * n // (most + 1)
                key = _key(sums, powers, begin, end, n, s)
                place = _slot(keys, key)
                if keys[place] == 0:
                    keys[place] = key
                    used[0] += 1
                following[rows, s] = heads[place]
                heads[place] = rows
            rows += 1
    return rows
