"""Compile a KenLM binary of the trie kind, quantised or not, into an n-gram table.

    python tools/ngram/kenlm_trie.py /usr/lib/x86_64-linux-gnu/libime/zh_CN.lm --out TABLE

So cecdata/lm/input_method.ngram was made of Debian's model of an input method (`make lm`). The
table's licence stays the model's.
KenLM's library scores sentences but does not list n-grams, which a table of another form needs.
The layout is that of KenLM's format version 5 (`lm/binary_format.cc`, `trie.hh`, `quantize.hh`,
`bhiksha.hh`): a header, the hashes of the vocabulary, quantisation bins, then one bit-packed array
for each order. The children of a node add the word before its words.
"""

from __future__ import annotations

import argparse
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import CecError, InputError
from cecdata.lm.ngrams import to_natural_logs
from cecdata.lm.table import Ngrams

MAGIC = b"mmap lm http://kheafield.com/code format version 5\n\0"
_HEADER = 88  # bytes of the magic words and of the sanity numbers after them
_SANITY = struct.pack("<fff", 0.0, 1.0, -0.5) + struct.pack("<IIIQ", 1, 0xFFFFFFFF, 0, 1)
# model types: trie, quantised trie, trie with chopped pointers, both
_TRIE, _QUANTISED, _CHOPPED, _BOTH = 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Order:
    """The n-grams of one order: words [N, n] in reading order, log10 P and log10 back-off [N]."""

    words: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    backoff: NDArray[np.float32]


def read(path: Path) -> tuple[list[str], list[Order]]:
    """Return the vocabulary, by word number, and the n-grams of each order from 1.

    Raises `InputError` if the file is not a trie of format version 5 in this byte order, has no
    vocabulary, or is cut short.
    """
    try:
        return _Reader(path).read()
    except (struct.error, ValueError, IndexError) as error:
        raise InputError(
            f"{path} is damaged or no KenLM trie of format version 5 ({error}). "
            "Build it again with KenLM's build_binary, or give the ARPA file"
        ) from error


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = np.fromfile(path, np.uint8)
        raw = self.data[:256].tobytes()
        if not raw.startswith(MAGIC):
            raise InputError(f"{path} is no KenLM binary of format version 5")
        if raw[_HEADER - len(_SANITY) : _HEADER] != _SANITY:
            raise InputError(f"{path} was written on a machine of another byte order")
        self.order, _, kind, vocabulary, _ = struct.unpack_from("<B3xfIB3xI", raw, _HEADER)
        if kind not in {_TRIE, _QUANTISED, _CHOPPED, _BOTH}:
            raise InputError(
                f"{path} is a KenLM binary of the probing kind, whose words cannot be listed. "
                "Give the ARPA file it was built from, or one built with `build_binary trie`"
            )
        if not vocabulary:
            raise InputError(f"{path} holds no vocabulary: build it without the option -i")
        if not 2 <= self.order <= 6:
            raise InputError(f"{path} has order {self.order}; orders 2 to 6 can be read")
        self.counts = struct.unpack_from(f"<{self.order}Q", raw, _HEADER + 20)
        if sum(self.counts) > 8 * len(self.data):
            raise ValueError(f"{sum(self.counts)} n-grams in {len(self.data)} bytes")
        self.chop_limit = 0  # most bits of a pointer in the table; the bigrams' header has it
        self.quantised, self.chopped = kind in {_QUANTISED, _BOTH}, kind in {_CHOPPED, _BOTH}

    def read(self) -> tuple[list[str], list[Order]]:
        place = -(-(_HEADER + 20 + 8 * self.order) // 8) * 8
        place += 8 + 8 * self.counts[0]  # the hashes of the words
        place = self._bins(place)
        prob, backoff, children = self._unigrams(place)
        place += 16 * (self.counts[0] + 2)
        words = np.arange(self.counts[0], dtype=np.int32)[:, None]
        orders = [Order(words, prob, backoff)]
        for order in range(2, self.order + 1):
            parent = np.repeat(np.arange(self.counts[order - 2]), np.diff(children))
            if len(parent) != self.counts[order - 1] or (np.diff(children) < 0).any():
                raise ValueError(f"the pointers of order {order - 1} do not lead to order {order}")
            word, prob, backoff, children, place = self._level(order, place)
            if word.max(initial=0) >= self.counts[0]:
                raise ValueError(f"a word of order {order} is not in the vocabulary")
            # a child's word precedes its parent's words
            words = np.column_stack([word, words[parent]])
            orders.append(Order(words, prob, backoff))
        return self._vocabulary(place), orders

    def _bins(self, place: int) -> int:
        """Read the quantisation bins; return the place after them."""
        self.middle_bins: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
        self.prob_bits = self.backoff_bits = 0
        if not self.quantised:
            return place
        version, self.prob_bits, self.backoff_bits = self.data[place : place + 3].tolist()
        if version != 2:
            raise ValueError(f"quantisation of version {version}")
        place += 8
        for _ in range(self.order - 2):
            prob = self._floats(place, 1 << self.prob_bits)
            place += prob.nbytes
            backoff = self._floats(place, 1 << self.backoff_bits)
            place += backoff.nbytes
            self.middle_bins.append((prob, backoff))
        self.longest_bins = self._floats(place, 1 << self.prob_bits)
        return place + self.longest_bins.nbytes

    def _floats(self, place: int, count: int) -> NDArray[np.float32]:
        return np.frombuffer(self.data[place : place + 4 * count].tobytes(), "<f4", count)

    def _unigrams(
        self, place: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        form = np.dtype([("prob", "<f4"), ("backoff", "<f4"), ("next", "<u8")])
        count = self.counts[0] + 1
        table = np.frombuffer(self.data[place : place + 16 * count].tobytes(), form, count)
        return table["prob"][:-1], table["backoff"][:-1], table["next"].astype(np.int64)

    def _level(
        self, order: int, place: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], int]:
        """Return words, log10 P, back-offs, first children and the place after this order."""
        entries, word_bits = self.counts[order - 1], self.counts[0].bit_length()
        last = order == self.order
        prob_bits = self.prob_bits if self.quantised else 31
        back_bits = 0 if last else (self.backoff_bits if self.quantised else 32)
        offsets, inline = np.zeros(1, np.uint64), 0
        if not last:
            most = self.counts[order]
            inline = most.bit_length()
            if self.chopped:
                if order == 2:
                    self.chop_limit = int(self.data[place + 1])
                chop = _chopped(entries + 1, most, self.chop_limit)
                inline = most.bit_length() - chop
                count = (most >> inline) + 1
                first = -(-place // 8) * 8 + 8
                offsets = np.frombuffer(self.data[first : first + 8 * count].tobytes(), "<u8")
                place += 8 * (1 + count) + 7
        width = word_bits + back_bits + prob_bits + inline
        at = np.arange(entries + (0 if last else 1), dtype=np.int64) * width
        word = self._bits(place, at[:entries], word_bits).astype(np.int32)
        back = self._bits(place, at[:entries] + word_bits, back_bits)
        prob = self._bits(place, at[:entries] + word_bits + back_bits, prob_bits)
        children = np.zeros(0, np.int64)
        if not last:
            low = self._bits(place, at + word_bits + back_bits + prob_bits, inline)
            high = np.searchsorted(offsets, np.arange(entries + 1), side="right") - 1
            children = (low | (high.astype(np.uint64) << np.uint64(inline))).astype(np.int64)
        place += ((1 + entries) * width + 7) // 8 + 8
        return word, *self._values(order, prob, back, last=last), children, place

    def _values(
        self, order: int, prob: NDArray[np.uint64], back: NDArray[np.uint64], *, last: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        if self.quantised:
            bins = self.longest_bins if last else self.middle_bins[order - 2][0]
            zero = np.zeros(len(prob), np.float32)
            return bins[prob], zero if last else self.middle_bins[order - 2][1][back]
        # the sign of a log-probability is not stored
        values = (prob.astype(np.uint32) | np.uint32(1 << 31)).view(np.float32)
        return values, back.astype(np.uint32).view(np.float32)

    def _bits(self, base: int, at: NDArray[np.int64], bits: int) -> NDArray[np.uint64]:
        """Return the numbers of `bits` bits at the bit offsets `at` from byte `base`."""
        if bits == 0:
            return np.zeros(len(at), np.uint64)
        first = base + (at >> 3)
        if len(first) and first[-1] + 8 > len(self.data):
            raise ValueError("the file ends too early")
        value = np.zeros(len(at), np.uint64)
        for byte in range(8):
            value |= self.data[first + byte].astype(np.uint64) << np.uint64(8 * byte)
        mask = np.uint64((1 << bits) - 1)
        return (value >> (at & 7).astype(np.uint64)) & mask

    def _vocabulary(self, place: int) -> list[str]:
        words = self.data[place:].tobytes().split(b"\0")
        if len(words) != self.counts[0] + 1 or words[0] != b"<unk>" or words[-1]:
            raise ValueError(f"{len(words) - 1} words where {self.counts[0]} are announced")
        return [word.decode("utf-8") for word in words[:-1]]


def _chopped(entries: int, most: int, limit: int) -> int:
    """Return the number of bits that KenLM moves from each pointer into a table to save most."""
    required = most.bit_length()
    chops = range(min(required, limit) + 1)
    changes = [(most >> (required - chop)) * 64 - entries * chop for chop in chops]
    return changes.index(min(changes))


def model(path: Path, licence: str = "as the file it was compiled from") -> Ngrams:
    """Return the model of orders 1 to 3, with natural logarithms."""
    words, orders = read(path)
    empty = Order(np.zeros((0, 3), np.int32), *[np.zeros(0, np.float32)] * 2)
    one, two, three = (*orders, empty)[:3]
    return Ngrams(
        name=path.name,
        licence=licence,
        words=tuple(words),
        word_log_prob=to_natural_logs(one.log_prob),
        word_backoff=to_natural_logs(one.backoff),
        pairs=two.words,
        pair_log_prob=to_natural_logs(two.log_prob),
        pair_backoff=to_natural_logs(two.backoff),
        triples=three.words,
        triple_log_prob=to_natural_logs(three.log_prob),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--licence", default="as the file it was compiled from")
    asked = parser.parse_args()
    try:
        made = model(asked.model, asked.licence)
        made.build_tables()  # raises where a table could not be used
        made.save(asked.out)
    except (CecError, OSError) as error:
        sys.exit(f"Error: {error}")
    print(f"{asked.out}: {len(made.words):,} words, {len(made.pairs):,} bigrams")


if __name__ == "__main__":
    main()
