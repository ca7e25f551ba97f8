"""Confusions of spans compiled to flat arrays for the kernel: a hash table and candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.corpus.compiled import compiled
from cecdata.hanzi.lexicon import words
from cecdata.operators import Operator
from cecdata.operators.spans import LONGEST, SHORTEST, InSpans, SpanSet
from cecdata.perturb.alias import walker
from cecdata.perturb.kernel.layout import (
    ALIAS_BITS,
    ALONE,
    COST_BITS,
    FIRST_SHIFT,
    KEEP_BITS,
    KEY_FACTOR,
    KIND_BITS,
    KNOWN_BITS,
    LAST,
    NO_THIRD,
    OPERATORS_SHIFT,
    SPAN_BITS,
    SPAN_TEXT_BITS,
    Ints,
    Longs,
    SpanTables,
)


class Cost(NamedTuple):
    """The Levenshtein distance of one edit: what it is on average, and at most."""

    mean: float
    most: int


@dataclass(frozen=True, slots=True)
class Spans:
    """The tables, the texts that their codes stand for; of each operator a hash and its cost."""

    arrays: SpanTables
    texts: tuple[str, ...]
    hashes: dict[str, str]
    costs: dict[str, Cost]


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
    assert len(texts) < 2**SPAN_TEXT_BITS
    assert len(parts) <= 8
    keys = [_packed(part.sources, slots) for part in parts]
    spans = np.unique(np.concatenate([*keys, np.zeros(0, np.uint64)]))[::-1]
    assert len(spans) < 2**SPAN_BITS
    rows = np.zeros((len(parts), len(spans), 4), np.int32)
    blocks: list[Longs] = []
    written = 0
    for s, (operator, part) in enumerate(sets.values()):
        at = len(spans) - 1 - np.searchsorted(spans[::-1], keys[s])
        rows[s, at, 0] = written + part.bounds[:-1]
        rows[s, at, 1] = np.diff(part.bounds)
        rows[s, at, 2] = [number[source] for source in part.sources]
        rows[s, at, 3] = [len(source) for source in part.sources]
        own = np.array([kinds.index(kind) for kind in operator.kinds], np.int64)
        blocks.append(_candidates(part, own, number))
        written += len(part.weight)
    which = {name: place for place, name in enumerate(sets)}
    arrays = SpanTables(
        row=np.array([which.get(operator.name, -1) for operator in operators], np.int8),
        operator=np.array(
            [o for o, operator in enumerate(operators) if operator.name in which], np.uint16
        ),
        **_searchable(spans, rows),
        rows=rows,
        candidates=np.concatenate([*blocks, np.zeros(0, np.uint64)]),
        texts=_bytes(texts),
        points=_points(texts),
    )
    hashes = {name: _hash(part, operator.kinds) for name, (operator, part) in sets.items()}
    return Spans(arrays, texts, hashes, {name: _cost(part) for name, (_, part) in sets.items()})


def _candidates(part: SpanSet, kinds: npt.NDArray[np.int64], number: Mapping[str, int]) -> Longs:
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


def _cost(part: SpanSet) -> Cost:
    """Words strike as often as they occur (jieba's counts); other spans equally often."""
    known = {
        text: count
        for length in range(SHORTEST, LONGEST + 1)
        for text, count in zip(words(length).texts, words(length).counts.tolist(), strict=True)
    }
    often = np.array([known.get(source, 1.0) for source in part.sources])
    row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
    mean = np.bincount(row, part.weight * part.cost) / np.bincount(row, part.weight)
    return Cost(float(np.average(mean, weights=often)), int(part.cost.max()))


def _packed(sources: Sequence[str], slots: Mapping[str, int]) -> Longs:
    """Each span as four slots of 16 bits, the first highest; 0 or NO_THIRD beyond its end."""
    slot_of = np.zeros(0x110000, np.uint64)
    slot_of[[ord(sign) for sign in slots]] = list(slots.values())
    points = _points(sources)
    assert ((points == 0) | (slot_of[points] > 0)).all(), "a span of characters without a slot"
    found = slot_of[points]
    found[points[:, 2] == 0, 2] = NO_THIRD  # so that it stands before the longer ones
    shifts = np.uint64(16) * np.arange(LONGEST, dtype=np.uint64)[::-1]
    return np.asarray(np.bitwise_or.reduce(found << shifts, axis=1))


def _searchable(spans: Longs, rows: Ints) -> dict[str, Longs]:
    """What the kernel searches in, of spans as `_packed`, highest first."""
    first, second = spans >> np.uint64(48), spans >> np.uint64(32) & np.uint64(0xFFFF)
    third, fourth = spans >> np.uint64(16) & np.uint64(0xFFFF), spans & np.uint64(0xFFFF)
    head = first | second << np.uint64(16)
    new = np.flatnonzero(np.r_[True, head[1:] != head[:-1]][: len(head)])
    able = np.zeros(len(spans), np.uint64)
    for s, row in enumerate(rows):
        able |= (row[:, 1] > 0).astype(np.uint64) << np.uint64(OPERATORS_SHIFT + s)
    tails = third | fourth << np.uint64(16) | able
    if len(spans):
        tails[np.r_[new[1:], len(spans)] - 1] |= np.uint64(1) << np.uint64(LAST)
    two = third == NO_THIRD
    entries = head[new] | new.astype(np.uint64) << np.uint64(FIRST_SHIFT)
    entries |= np.where(two[new], able[new], np.uint64(0))
    alone = two[new] & (tails[new] >> np.uint64(LAST) != 0)
    entries |= alone.astype(np.uint64) << np.uint64(ALONE)
    heads = np.zeros(2 ** max(1, (2 * len(new)).bit_length()), np.uint64)  # at most half full
    _insert(heads, entries)
    longer = _bitmap(head[~two] | third[~two] << np.uint64(32))
    return {"starts": _bitmap(head), "longer": longer, "heads": heads, "tails": tails}


def _bitmap(keys: Longs) -> Longs:
    found = np.zeros(2**KNOWN_BITS // 64, np.uint64)
    bit = (keys * np.uint64(KEY_FACTOR)) >> np.uint64(64 - KNOWN_BITS)
    where = (bit >> np.uint64(6)).astype(np.int64)
    np.bitwise_or.at(found, where, np.uint64(1) << (bit & np.uint64(63)))
    return found


@compiled
def _insert(heads: Longs, entries: Longs) -> None:
    wrap = np.uint64(len(heads) - 1)
    for entry in entries:
        spread = (entry & np.uint64(0xFFFFFFFF)) * np.uint64(KEY_FACTOR)
        at = spread >> np.uint64(32) & wrap
        while heads[at] != 0:
            at = (at + np.uint64(1)) & wrap
        heads[at] = entry


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
