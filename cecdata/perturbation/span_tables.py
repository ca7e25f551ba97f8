"""Confusions of spans compiled to flat arrays for the kernel: a hash table and candidates.

The kernel looks a span up by its first two characters, its head. The head's slots are spread over
32 bits: the upper ones number a bit of the bitmap `starts`, the lower ones are the head's tag. The
n-th set bit has entry n of `heads`, whose tag tells heads apart; where several share the bit, it
leads to a run of entries, one for each. A longer span is found by its third and fourth character
among the `tails` of its head, which are a run, too.

A packed span is four slots of 16 bits, the first highest. That of two characters has NO_THIRD and
0 in place of the others, that of three has 0 in place of the fourth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels import compiled
from cecdata.hanzi.characters import list_words
from cecdata.operators import Operator
from cecdata.operators.spans import LONGEST, SHORTEST, SpanConfusions, SpanSet
from cecdata.perturbation.kernel import layout
from cecdata.perturbation.kernel.layout import Longs, SpanTables, Words


class Cost(NamedTuple):
    """The Levenshtein distance of one edit: its mean and its maximum."""

    mean: float
    most: int


def compile_spans(
    operators: Sequence[Operator],
    slots: Mapping[str, int],
    singles: dict[str, int],
    kinds: Sequence[str],
) -> tuple[SpanTables, tuple[str, ...], dict[str, str], dict[str, Cost]]:
    """Compile the sets of the operators that rewrite spans; empty arrays where there is none.

    Return the tables, the texts that their codes stand for, and each operator's hash and cost.
    `slots` maps characters to their numbers, and `singles` maps texts to rows of `Tables.texts`: a
    character of a span or replacement that has no row there gets the next one.
    """
    sets = {
        operator.name: (operator, operator.confusions.build())
        for operator in operators
        if isinstance(operator.confusions, SpanConfusions)
    }
    span_sets = [span_set for _, span_set in sets.values()]
    texts = tuple(dict.fromkeys(t for part in span_sets for t in (*part.sources, *part.texts)))
    text_number = {text: position for position, text in enumerate(texts)}
    assert len(texts) < 2**layout.SPAN_TEXT_BITS
    characters = _pack_texts(texts, singles)
    packed = [_pack_spans(span_set.sources, slots) for span_set in span_sets]
    ascending = np.unique(np.concatenate([*packed, np.zeros(0, np.uint64)]))
    spans = ascending[::-1]
    places = [len(spans) - 1 - np.searchsorted(ascending, part) for part in packed]
    searchable, row_of = _make_search_tables(spans, places)
    rows = np.zeros((len(searchable["heads"]) + len(searchable["tails"]), len(sets)), np.uint64)
    blocks: list[Longs] = []
    written = 0  # candidates
    for column, (operator, span_set) in enumerate(sets.values()):
        rows[row_of[places[column]], column] = _pack_rows(span_set, written, text_number)
        codes = np.array([kinds.index(kind) for kind in operator.kinds], np.int64)
        blocks.append(_pack_candidates(span_set, codes, text_number, characters))
        written += len(span_set.weight)
    assert written < 2**layout.COUNT_SHIFT
    column_of = {name: position for position, name in enumerate(sets)}
    arrays = SpanTables(
        column=np.array([column_of.get(operator.name, -1) for operator in operators], np.int8),
        operator=np.array(
            [o for o, operator in enumerate(operators) if operator.name in column_of], np.uint16
        ),
        **searchable,
        rows=rows,
        candidates=np.concatenate([*blocks, np.zeros((0, 2), np.uint64)]),
        points=_to_code_points(texts),
    )
    hashes = {name: _hash_set(part, operator.kinds) for name, (operator, part) in sets.items()}
    costs = {name: _measure_cost(part) for name, (_, part) in sets.items()}
    return arrays, texts, hashes, costs


def _pack_rows(part: SpanSet, first: int, text_number: Mapping[str, int]) -> Longs:
    """Return an operator's words of `SpanTables.rows`; its candidates begin with number `first`."""
    count = np.diff(part.bounds)
    assert count.max(initial=0) < 2**layout.ALIAS_BITS
    source = np.array([text_number[text] for text in part.sources], np.int64)
    size = np.array([len(text) for text in part.sources], np.int64)
    packed = first + part.bounds[:-1] | count << layout.COUNT_SHIFT | source << layout.SOURCE_SHIFT
    return np.asarray((packed | size << layout.SIZE_SHIFT).astype(np.uint64))


def _pack_candidates(
    part: SpanSet, kinds: npt.NDArray[np.int64], text_number: Mapping[str, int], characters: Longs
) -> Longs:
    """Return an operator's rows of `SpanTables.candidates`.

    `kinds` are the codes of its kinds, and `characters` what `_pack_texts` returned.
    """
    keep, alias = make_alias_tables(part.bounds, part.weight)
    first_of_row = np.repeat(part.bounds[:-1], np.diff(part.bounds))
    text = np.array([text_number[name] for name in part.texts], np.int64)[part.replacement]
    cost_shift = layout.SPAN_TEXT_BITS + layout.KIND_BITS
    alias_shift = cost_shift + layout.COST_BITS
    keep_shift = alias_shift + layout.ALIAS_BITS
    packed = text | kinds[part.kind] << layout.SPAN_TEXT_BITS | part.cost << cost_shift
    packed |= (alias - first_of_row) << alias_shift | pack_chances(keep) << keep_shift
    return np.column_stack([packed.astype(np.uint64), characters[text]])


def _pack_texts(texts: Sequence[str], singles: dict[str, int]) -> Longs:
    """Return each text as rows of `Tables.texts`, 16 bits each, the first character lowest."""
    points = _to_code_points(texts)
    row_of = np.zeros(0x110000, np.uint64)  # by code point
    for point in np.unique(points[points > 0]).tolist():
        row_of[point] = singles.setdefault(chr(point), len(singles))  # a new one gets the next row
    shifts = np.uint64(layout.TEXT_BITS) * np.arange(LONGEST, dtype=np.uint64)
    return np.asarray(np.bitwise_or.reduce(row_of[points] << shifts, axis=1))


def _measure_cost(part: SpanSet) -> Cost:
    """Return the cost of an operator's edits; its words are weighted by their frequency.

    A span that is no word weighs as much as a word that occurs once.
    """
    count_of: dict[str, float] = {}
    for length in range(SHORTEST, LONGEST + 1):
        words = list_words(length)
        count_of |= dict(zip(words.texts, words.counts.tolist(), strict=True))
    frequency = np.array([count_of.get(source, 1.0) for source in part.sources])
    row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
    mean = np.bincount(row, part.weight * part.cost) / np.bincount(row, part.weight)
    return Cost(float(np.average(mean, weights=frequency)), int(part.cost.max()))


def _pack_spans(sources: Sequence[str], slots: Mapping[str, int]) -> Longs:
    """Return the packed spans; `slots` maps characters to their slots."""
    slot_of = np.zeros(0x110000, np.uint64)
    slot_of[[ord(sign) for sign in slots]] = list(slots.values())
    points = _to_code_points(sources)
    assert ((points == 0) | (slot_of[points] > 0)).all(), "a span of characters without a slot"
    packed = slot_of[points]
    packed[points[:, 2] == 0, 2] = layout.NO_THIRD  # so that it sorts before the longer ones
    shifts = np.uint64(16) * np.arange(LONGEST, dtype=np.uint64)[::-1]
    return np.asarray(np.bitwise_or.reduce(packed << shifts, axis=1))


def _make_search_tables(
    spans: Longs, places: Sequence[npt.NDArray[np.intp]]
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.intp]]:
    """Return the arrays of `SpanTables` that find a span, and the row of each span in `rows`.

    `spans` are packed, highest first, so that those of one head lie together. `places` has the
    positions in `spans` of each rewriting operator's own.
    """
    able = np.zeros(len(spans), np.uint64)  # a bit for each of the rewriting operators
    for column, positions in enumerate(places):
        able[positions] |= np.uint64(1 << column)
    first, second, third, fourth = (
        spans >> np.uint64(shift) & np.uint64(0xFFFF) for shift in (48, 32, 16, 0)
    )
    pair, is_long = first | second << np.uint64(16), third != layout.NO_THIRD
    distinct, head_of = np.unique(pair, return_inverse=True)
    able_of_two, goes_on = np.zeros((2, len(distinct)), np.uint64)
    able_of_two[head_of[~is_long]] = able[~is_long]
    goes_on[head_of[is_long]] = 1
    starts, before, heads, entry_of_head = _make_heads(distinct, able_of_two, goes_on)
    row_of = entry_of_head[head_of]
    entry_of_tail = row_of[is_long]
    tails = third | fourth << np.uint64(16) | able << np.uint64(layout.TAIL_OPERATORS_SHIFT)
    tails = tails[is_long] | _find_run_ends(entry_of_tail) << np.uint64(layout.LAST)
    row_of[is_long] = len(heads) + np.arange(len(tails))
    first_tail = np.zeros(len(heads), np.uint32)
    # written backwards: the first tail of a head is written last
    first_tail[entry_of_tail[::-1]] = np.arange(len(tails), dtype=np.uint32)[::-1]
    three = (pair | third << np.uint64(32))[is_long] * np.uint64(layout.KEY_FACTOR)
    longer = _make_bitmap(three >> np.uint64(64 - layout.KNOWN_BITS))
    searchable = {"starts": starts, "before": before, "longer": longer}
    return {**searchable, "heads": heads, "first": first_tail, "tails": tails}, row_of


def _make_heads(
    pairs: Longs, able: Longs, goes_on: Longs
) -> tuple[Longs, Words, Words, npt.NDArray[np.intp]]:
    """Return `SpanTables.starts`, `before` and `heads`, and the entry of each head in the last.

    `pairs` are the distinct heads, as first slot | second << 16; `able` are the operators that edit
    these two characters, and `goes_on` is 1 where a longer span begins with them.
    """
    spread = pairs * np.uint64(layout.PAIR_FACTOR) & np.uint64(0xFFFFFFFF)
    bit, tag = spread >> np.uint64(layout.TAG_BITS), spread & np.uint64((1 << layout.TAG_BITS) - 1)
    starts = _make_bitmap(bit)
    set_bits = np.unpackbits(starts.view(np.uint8), bitorder="little").reshape(-1, 64).sum(1)
    before = np.r_[np.uint64(0), np.cumsum(set_bits, dtype=np.uint64)][: len(starts)]
    distinct, entry_of_bit, count = np.unique(bit, return_inverse=True, return_counts=True)
    # heads that share a bit have their entries, bit by bit, behind those of the bits
    shared = np.flatnonzero(count[entry_of_bit] > 1)
    shared = shared[np.argsort(entry_of_bit[shared], kind="stable")]
    entry = entry_of_bit.astype(np.intp)
    entry[shared] = len(distinct) + np.arange(len(shared))
    heads = np.zeros(len(distinct) + len(shared), np.uint64)
    heads[entry] = (
        tag | able << np.uint64(layout.OPERATORS_SHIFT) | goes_on << np.uint64(layout.GOES_ON)
    )
    is_last = _find_run_ends(entry_of_bit[shared])
    heads[entry[shared]] |= is_last << np.uint64(layout.FINAL)
    first = shared[np.r_[True, is_last[:-1] > 0][: len(shared)]]  # of those that share a bit
    heads[entry_of_bit[first]] = entry[first].astype(np.uint64) | np.uint64(1 << layout.SHARED)
    assert len(heads) < 2**layout.SHARED
    return starts, before.astype(np.uint32), heads.astype(np.uint32), entry


def _find_run_ends(values: npt.NDArray[np.intp]) -> Longs:
    """Return 1 for the last of each run of equal values, and 0 for the others."""
    return np.asarray(np.r_[values[1:] != values[:-1], True][: len(values)], np.uint64)


def _make_bitmap(bits: Longs) -> Longs:
    """Return a bitmap of 2^KNOWN_BITS bits, in words of 64, with the bits of these numbers set."""
    bitmap = np.zeros(2**layout.KNOWN_BITS // 64, np.uint64)
    word_of_bit = (bits >> np.uint64(6)).astype(np.int64)
    np.bitwise_or.at(bitmap, word_of_bit, np.uint64(1) << (bits & np.uint64(63)))
    return bitmap


def _to_code_points(texts: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Return the code points of texts, [texts, LONGEST], with zeros behind the shorter ones."""
    padded = "".join(text.ljust(LONGEST, "\0") for text in texts)
    return np.frombuffer(padded.encode("utf-32-le"), np.uint32).reshape(-1, LONGEST).copy()


def _hash_set(part: SpanSet, kinds: Sequence[str]) -> str:
    """Return the SHA-256 of the confusions, with shares to seven digits: all processors agree."""
    row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
    share = part.weight / np.bincount(row, part.weight)[row]
    digest = hashlib.sha256("\t".join((*kinds, *part.sources, *part.texts)).encode())
    for column in (row, part.replacement, part.kind, np.round(share * 1e7)):
        digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()


def pack_chances(keep: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return chances as they are packed into candidates: in steps of 2**-KEEP_BITS, below 1."""
    steps = np.minimum(keep * 2**layout.KEEP_BITS, 2**layout.KEEP_BITS - 1)
    return np.asarray(steps, np.int64)


@compiled
def make_alias_tables(
    bounds: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return Walker's alias tables of rows of weights: (probability of keeping j, alias of j).

    Row r is weights[bounds[r]:bounds[r + 1]]; the second array holds positions among all weights.
    """
    keep, alias = np.ones(len(weights)), np.arange(len(weights))
    share = np.empty(len(weights))  # of the row, times the length of the row
    small, large = np.empty((2, len(weights)))  # stacks of the shares below 1, and of the others
    for r in range(len(bounds) - 1):
        first, last = bounds[r], bounds[r + 1]
        total = 0.0
        small_count, large_count = 0, 0
        for j in range(first, last):
            total += weights[j]
        for j in range(first, last):
            share[j] = weights[j] * (last - first) / total
            if share[j] < 1:
                small[small_count] = j
                small_count += 1
            else:
                large[large_count] = j
                large_count += 1
        while small_count and large_count:
            small_count -= 1
            poor, rich = int(small[small_count]), int(large[large_count - 1])
            keep[poor], alias[poor] = share[poor], rich
            share[rich] -= 1 - share[poor]
            if share[rich] < 1:
                large_count -= 1
                small[small_count] = rich
                small_count += 1
    return keep, alias
