"""New words of a text, found by statistics: strings that are bound within and free outside.

A string is bound if its parts occur together far more often than by chance, however it is cut
(pointwise mutual information), and free if many characters stand before and behind it (branching
entropy).
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

LONGEST = 6  # characters of a new word
FEWEST = 3  # occurrences of one
BOUND, FREE = 3.0, 0.6  # least mutual information and entropy, in nats
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Keys = NDArray[np.uint64]
Longs = NDArray[np.int64]


def find_words(
    sentences: Sequence[str], known: Container[str] = (), bound: float = BOUND
) -> dict[str, int]:
    """Return the words of the sentences that are not known, and how often each occurs."""
    joined = " ".join(["", *sentences, ""])
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    han = (points >= 0x4E00) & (points <= 0x9FFF)
    texts = _Strings(points, han)
    found: dict[str, int] = {}
    for length in range(2, LONGEST + 1):
        for at, count in texts.free_and_bound(length, bound):
            word = joined[at : at + length]
            if word not in known:
                found[word] = count
    return dict(sorted(found.items()))


class _Strings:
    """The strings of Han of each length: hashes by place, and by distinct hash how many."""

    def __init__(self, points: NDArray[np.uint32], han: NDArray[np.bool_]) -> None:
        self._points, self._han = points, han
        self._total = max(int(han.sum()), 1)
        self._keys: list[Keys] = [np.zeros(len(points), np.uint64)]
        self._distinct: list[tuple[Keys, Longs]] = [self._counted(self._keys[0][:0])]
        self._whole = np.ones(len(points), np.bool_)
        for length in range(1, LONGEST + 1):
            last = length - 1
            keys = self._keys[-1].copy()
            ahead = len(points) - last
            keys[:ahead] = (keys[:ahead] ^ points[last:].astype(np.uint64)) * _FACTOR
            keys ^= keys >> np.uint64(29)
            self._whole[:ahead] &= han[last:]
            self._whole[ahead:] = False
            self._keys.append(keys)
            self._distinct.append(self._counted(keys[self._whole]))

    def free_and_bound(self, length: int, least: float) -> list[tuple[int, int]]:
        """Return a place and the count of each word of this length."""
        begins = np.flatnonzero(self._runs(length))
        keys = self._keys[length][begins]
        order = np.argsort(keys, kind="stable")
        keys, begins = keys[order], begins[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        counts = np.diff(np.append(first, len(keys)))
        frequent = counts >= FEWEST
        bound = np.zeros(len(first), np.bool_)
        begin = begins[first[frequent]]
        bound[frequent] = self._binding(begin, counts[frequent], length) > least
        number = np.repeat(np.arange(len(first)), counts)
        inside = bound[number]
        number, begins = number[inside], begins[inside]
        free = np.full(len(first), np.inf)
        for places in (begins - 1, begins + length):
            free = np.minimum(free, self._entropy(number, places, len(first)))
        words = np.flatnonzero(bound & (free > FREE))
        at = begins[np.searchsorted(number, words)]
        return list(zip(at.tolist(), counts[words].tolist(), strict=True))

    def _runs(self, length: int) -> NDArray[np.bool_]:
        whole = self._han.copy()
        for ahead in range(1, length):
            whole[:-ahead] &= self._han[ahead:]
            whole[-ahead:] = False
        return whole

    def _binding(self, begins: Longs, counts: Longs, length: int) -> NDArray[np.float64]:
        """Return the mutual information of the two parts of each string, where it is least."""
        least = np.full(len(begins), np.inf)
        for size in range(1, length):
            left = self._count(self._keys[size][begins], size)
            right = self._count(self._keys[length - size][begins + size], length - size)
            least = np.minimum(least, np.log(counts * self._total / (left * right)))
        return least

    def _count(self, keys: Keys, length: int) -> Longs:
        distinct, counts = self._distinct[length]
        return counts[np.searchsorted(distinct, keys)]

    def _entropy(self, number: Longs, places: Longs, size: int) -> NDArray[np.float64]:
        """Return the entropy of the characters at the places that belong to each number."""
        signs = np.where(self._han[places], self._points[places], 0).astype(np.int64)
        pairs, counts = np.unique(number << 21 | signs, return_counts=True)
        total = np.bincount(number, minlength=size)[pairs >> 21]
        shares = counts / total
        return np.asarray(np.bincount(pairs >> 21, -shares * np.log(shares), size), np.float64)

    @staticmethod
    def _counted(keys: Keys) -> tuple[Keys, Longs]:
        ordered = np.sort(keys)
        begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        return ordered[begins], np.diff(np.append(begins, len(ordered)))
