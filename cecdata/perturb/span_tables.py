"""Confusions of spans compiled to flat arrays for the kernel: a hash table and candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.corpus.compiled import compiled
from cecdata.operators import Operator
from cecdata.operators.spans import LONGEST, SHORTEST, InSpans, SpanSet
from cecdata.perturb.alias import walker

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.uint64]

# Of `candidates`, beside tables.KIND_BITS and KEEP_BITS.
SPAN_TEXT_BITS, COST_BITS, ALIAS_BITS, KIND_BITS, KEEP_BITS = 20, 3, 14, 5, 22
KNOWN_BITS = 19  # of a bitmap: 64 KiB stay in the cache
# An odd number whose product with a key spreads it over the upper bits (the golden ratio).
KEY_FACTOR = 0x9E3779B97F4A7C15


class SpanTables(NamedTuple):
    """What the kernel reads of operators that rewrite spans of two to four characters."""

    row: npt.NDArray[np.int8]  # [O] the operator's row in `rows`, or -1
    operator: npt.NDArray[np.uint16]  # [rewriting operators] the other way round
    # Open addressing over spans packed as four slots of 16 bits: [H] key or 0, and span
    keys: Longs
    found: Ints
    starts: Longs  # [words] a bitmap of the hashed first two characters of every span
    known: Longs  # [3, words] bitmaps of the hashed spans of two, three and four characters
    facts: Ints  # [spans, 2] text and number of characters
    rows: Ints  # [rewriting operators, spans, 2] first candidate and number of candidates
    # [C] text | kind << 20 | cost << 25 | alias, as a place in the row << 28 | keep << 42
    candidates: Longs
    texts: Longs  # [T, 3] UTF-8, lowest byte first, in two words, and its number of bytes
    points: npt.NDArray[np.uint32]  # [T, 4] code points


@dataclass(frozen=True, slots=True)
class Spans:
    """The tables, the texts that their codes stand for, a hash of each operator's set."""

    arrays: SpanTables
    texts: tuple[str, ...]
    hashes: dict[str, str]


def compile_spans(
    operators: Sequence[Operator], slots: Mapping[str, int], kinds: Sequence[str]
) -> Spans:
    """The sets of the operators that rewrite spans; empty arrays where there is none.

    `slots` are the numbers of the characters, texts beyond them are the spans' own.
    """
    sets = {
        operator.name: (operator, operator.confusions.build())
        for operator in operators
        if isinstance(operator.confusions, InSpans)
    }
    parts = [found for _, found in sets.values()]
    texts = tuple(dict.fromkeys(t for part in parts for t in (*part.sources, *part.texts)))
    number = {text: place for place, text in enumerate(texts)}
    sources = sorted({source for part in parts for source in part.sources})
    assert len(texts) < 2**SPAN_TEXT_BITS
    rows = np.zeros((len(parts), len(sources), 2), np.int32)
    place_of = {source: place for place, source in enumerate(sources)}
    blocks: list[Longs] = []
    written = 0
    for s, (operator, part) in enumerate(sets.values()):
        at = [place_of[source] for source in part.sources]
        rows[s, at, 0] = written + part.bounds[:-1]
        rows[s, at, 1] = np.diff(part.bounds)
        own = np.array([kinds.index(kind) for kind in operator.kinds], np.int64)
        blocks.append(_candidates(part, own, number))
        written += len(part.weight)
    which = {name: place for place, name in enumerate(sets)}
    packed = _packed(sources, slots)
    keys, found = _hash_table(packed)
    facts = [(number[source], len(source)) for source in sources]
    arrays = SpanTables(
        row=np.array([which.get(operator.name, -1) for operator in operators], np.int8),
        operator=np.array(
            [o for o, operator in enumerate(operators) if operator.name in which], np.uint16
        ),
        keys=keys,
        found=found,
        starts=_known(packed & np.uint64(0xFFFFFFFF), [source[:2] for source in sources])[0],
        known=_known(packed, sources),
        facts=np.array(facts, np.int32).reshape(-1, 2),
        rows=rows,
        candidates=np.concatenate([*blocks, np.zeros(0, np.uint64)]),
        texts=_bytes(texts),
        points=_points(texts),
    )
    hashes = {name: _hash(part, operator.kinds) for name, (operator, part) in sets.items()}
    return Spans(arrays, texts, hashes)


def _candidates(
    part: SpanSet, kinds: npt.NDArray[np.int64], number: Mapping[str, int]
) -> Longs:
    keep, alias = walker(part.bounds, part.weight)
    most = 2**KEEP_BITS - 1
    first = np.repeat(part.bounds[:-1], np.diff(part.bounds))
    text = np.array([number[name] for name in part.texts], np.int64)[part.replacement]
    chance = np.minimum(keep * (most + 1), most).astype(np.int64)
    shift = SPAN_TEXT_BITS
    packed = text | kinds[part.kind] << shift
    packed |= part.cost << (shift := shift + KIND_BITS)
    packed |= (alias - first) << (shift := shift + COST_BITS)
    return np.asarray((packed | chance << (shift + ALIAS_BITS)).astype(np.uint64))


def _packed(sources: Sequence[str], slots: Mapping[str, int]) -> Longs:
    """Each span as four slots of 16 bits, the first lowest."""
    slot_of = np.zeros(0x110000, np.uint64)
    slot_of[[ord(sign) for sign in slots]] = list(slots.values())
    shifts = np.uint64(16) * np.arange(LONGEST, dtype=np.uint64)
    return np.asarray(np.bitwise_or.reduce(slot_of[_points(sources)] << shifts, axis=1))


@compiled
def _insert(
    keys: Longs, found: Ints, packed: Longs
) -> None:
    mask = np.uint64(len(keys) - 1)
    for number in range(len(packed)):
        at = (packed[number] * np.uint64(KEY_FACTOR)) >> np.uint64(32) & mask
        while keys[at] != 0:
            at = (at + np.uint64(1)) & mask
        keys[at] = packed[number]
        found[at] = number


def _hash_table(
    packed: Longs,
) -> tuple[Longs, Ints]:
    size = 2 ** max(1, (4 * len(packed)).bit_length())  # at most a quarter full
    keys, found = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
    _insert(keys, found, packed)
    return keys, found


def _known(packed: Longs, sources: Sequence[str]) -> Longs:
    bitmaps = np.zeros((LONGEST - SHORTEST + 1, 2**KNOWN_BITS // 64), np.uint64)
    size = np.array([len(source) for source in sources], np.int64) - SHORTEST
    bit = (packed * np.uint64(KEY_FACTOR)) >> np.uint64(64 - KNOWN_BITS)
    where = size, (bit >> np.uint64(6)).astype(np.int64)
    np.bitwise_or.at(bitmaps, where, np.uint64(1) << (bit & np.uint64(63)))
    return bitmaps


def _bytes(texts: Sequence[str]) -> Longs:
    raw = [text.encode() for text in texts]
    words = np.frombuffer(b"".join(text.ljust(16, b"\0") for text in raw), "<u8").reshape(-1, 2)
    sizes = np.array([len(text) for text in raw], np.uint64)
    return np.column_stack([words, sizes])


def _points(texts: Sequence[str]) -> npt.NDArray[np.uint32]:
    padded = "".join(text.ljust(LONGEST, "\0") for text in texts)
    return np.frombuffer(padded.encode("utf-32-le"), np.uint32).reshape(-1, LONGEST).copy()


def _hash(part: SpanSet, kinds: Sequence[str]) -> str:
    """SHA-256 of the confusions, with shares to seven digits: what processors agree on."""
    row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
    share = part.weight / np.bincount(row, part.weight)[row]
    digest = hashlib.sha256("\t".join((*kinds, *part.sources, *part.texts)).encode())
    for column in (row, part.replacement, part.kind, np.round(share * 1e7)):
        digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()
