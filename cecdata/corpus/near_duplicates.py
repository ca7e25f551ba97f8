"""Near-duplicates: sentences that differ by a few characters from an earlier one.

Two sentences are near-duplicates if their Levenshtein distance is at most k = min(3, length // 10)
of the shorter one; sentences under ten characters have none. If a sentence of length L is cut into
k + 1 segments, one of them stands unchanged in every near-duplicate, moved by at most k places
(Li et al., Pass-Join, PVLDB 5, 2011). So each kept sentence is filed under its segments, and for a
new one its substrings of those lengths at those places are looked up. A fingerprint of the
characters and then the distance decide. Unlike MinHash, this misses no pair, unless more than 4,096
kept sentences of one length share a segment: then only the latest 4,096 are compared.

Memory: about 120 bytes and the UTF-8 of each kept sentence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.utf8 import string_buffers
from cecdata.corpus.near_kernel import SEGMENTS, first, refile
from cecdata.corpus.normalise import Normalised, reject

Int64s = npt.NDArray[np.int64]

_FILL = 0.6  # of the table of segments


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
        self._next = np.zeros((1 << 10, SEGMENTS), np.int32)  # the sentence filed before it
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
        self._rows = first(data, bounds, near, edits, self._rows, *state, *table)
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
        while int(self._used[0]) + SEGMENTS * sentences > _FILL * slots:
            slots *= 2
        if slots > len(self._keys):
            keys, heads = np.zeros(slots, np.uint64), np.full(slots, -1, np.int32)
            refile(self._keys, self._heads, keys, heads)
            self._keys, self._heads = keys, heads


def without_near(clean: Normalised, seen: NearDuplicates) -> Normalised:
    """Reject near-duplicates of earlier kept sentences, with the reason `near_duplicate`."""
    near, edits = seen.first(clean.batch.column("text"))
    bad = near >= 0
    if not bad.any():
        return clean
    details = [
        f"{apart} edits from {seen.text(row)}"
        for row, apart in zip(near[bad].tolist(), edits[bad].tolist(), strict=True)
    ]
    rejected = reject(clean.batch.filter(pa.array(bad)), "near_duplicate", details)
    kept = clean.batch.filter(pa.array(~bad))
    return Normalised(kept, pa.concat_batches([clean.rejected, rejected]))


def _grown(array: npt.NDArray[np.generic], size: int) -> npt.NDArray[np.generic]:
    if len(array) >= size:
        return array
    grown = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
