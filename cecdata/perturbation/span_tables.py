"""Confusions of spans compiled to flat arrays for the kernel: a hash table and candidates."""

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
    parts = [part for _, part in sets.values()]
    texts = tuple(dict.fromkeys(t for part in parts for t in (*part.sources, *part.texts)))
    text_number = {text: position for position, text in enumerate(texts)}
    assert len(texts) < 2**layout.SPAN_TEXT_BITS
    signs = _pack_texts(texts, singles)
    keys = [_pack_spans(part.sources, slots) for part in parts]
    spans = np.unique(np.concatenate([*keys, np.zeros(0, np.uint64)]))[::-1]
    # positions in `spans`, which are descending, while searchsorted needs them ascending
    places_of_parts = [len(spans) - 1 - np.searchsorted(spans[::-1], key) for key in keys]
    searchable, row_of = _make_search_tables(spans, places_of_parts)
    rows = np.zeros((len(searchable["heads"]) + len(searchable["tails"]), len(parts)), np.uint64)
    blocks: list[Longs] = []
    written = 0
    for column, (operator, part) in enumerate(sets.values()):
        rows[row_of[places_of_parts[column]], column] = _pack_rows(part, written, text_number)
        codes = np.array([kinds.index(kind) for kind in operator.kinds], np.int64)
        blocks.append(_pack_candidates(part, codes, text_number, signs))
        written += len(part.weight)
    assert written < 2**layout.COUNT_SHIFT
    column_of = {name: position for position, name in enumerate(sets)}
    arrays = SpanTables(
        row=np.array([column_of.get(operator.name, -1) for operator in operators], np.int8),
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
    assert layout.ALIAS_BITS <= layout.SOURCE_SHIFT - layout.COUNT_SHIFT
    assert count.max(initial=0) < 2**layout.ALIAS_BITS
    source = np.array([text_number[text] for text in part.sources], np.int64)
    size = np.array([len(text) for text in part.sources], np.int64)
    packed = first + part.bounds[:-1] | count << layout.COUNT_SHIFT | source << layout.SOURCE_SHIFT
    return np.asarray((packed | size << layout.SIZE_SHIFT).astype(np.uint64))


def _pack_candidates(
    part: SpanSet, kinds: npt.NDArray[np.int64], text_number: Mapping[str, int], signs: Longs
) -> Longs:
    """Return an operator's rows of `SpanTables.candidates`; `kinds` are the codes of its kinds."""
    keep, alias = make_alias_tables(part.bounds, part.weight)
    most = 2**layout.KEEP_BITS - 1
    first = np.repeat(part.bounds[:-1], np.diff(part.bounds))
    text = np.array([text_number[name] for name in part.texts], np.int64)[part.replacement]
    chance = np.minimum(keep * (most + 1), most).astype(np.int64)
    cost_shift = layout.SPAN_TEXT_BITS + layout.KIND_BITS
    alias_shift = cost_shift + layout.COST_BITS
    packed = text | kinds[part.kind] << layout.SPAN_TEXT_BITS | part.cost << cost_shift
    packed |= (alias - first) << alias_shift | chance << (alias_shift + layout.ALIAS_BITS)
    return np.column_stack([packed.astype(np.uint64), signs[text]])


def _pack_texts(texts: Sequence[str], singles: dict[str, int]) -> Longs:
    """Return each text as rows of `Tables.texts`, 16 bits each, the first character lowest."""
    points = _to_code_points(texts)
    row_of = np.zeros(0x110000, np.uint64)
    for point in np.unique(points[points > 0]).tolist():
        row_of[point] = singles.setdefault(chr(point), len(singles))  # a new one gets the next row
    shifts = np.uint64(layout.TEXT_BITS) * np.arange(LONGEST, dtype=np.uint64)
    return np.asarray(np.bitwise_or.reduce(row_of[points] << shifts, axis=1))


def _measure_cost(part: SpanSet) -> Cost:
    """Return the cost of an operator; words are weighted by frequency, other spans equally."""
    count_of: dict[str, float] = {}
    for length in range(SHORTEST, LONGEST + 1):
        words = list_words(length)
        count_of |= dict(zip(words.texts, words.counts.tolist(), strict=True))
    frequency = np.array([count_of.get(source, 1.0) for source in part.sources])
    row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
    mean = np.bincount(row, part.weight * part.cost) / np.bincount(row, part.weight)
    return Cost(float(np.average(mean, weights=frequency)), int(part.cost.max()))


def _pack_spans(sources: Sequence[str], slots: Mapping[str, int]) -> Longs:
    """Return each span as four slots of 16 bits, the first highest; 0 or NO_THIRD at its end."""
    slot_of = np.zeros(0x110000, np.uint64)
    slot_of[[ord(sign) for sign in slots]] = list(slots.values())
    points = _to_code_points(sources)
    assert ((points == 0) | (slot_of[points] > 0)).all(), "a span of characters without a slot"
    packed = slot_of[points]
    packed[points[:, 2] == 0, 2] = layout.NO_THIRD  # so that it sorts before the longer ones
    shifts = np.uint64(16) * np.arange(LONGEST, dtype=np.uint64)[::-1]
    return np.asarray(np.bitwise_or.reduce(packed << shifts, axis=1))


def _make_search_tables(
    spans: Longs, places_of_parts: Sequence[npt.NDArray[np.intp]]
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.intp]]:
    """Return the arrays of `SpanTables` that find a span, and the row of each span in `rows`.

    `spans` are packed, highest first; `places_of_parts` has, for each operator that rewrites
    spans, the positions of its spans. `able` has a bit for each of these operators.
    """
    able = np.zeros(len(spans), np.uint64)
    for column, positions in enumerate(places_of_parts):
        able[positions] |= np.uint64(1 << column)
    first, second = spans >> np.uint64(48), spans >> np.uint64(32) & np.uint64(0xFFFF)
    third, fourth = spans >> np.uint64(16) & np.uint64(0xFFFF), spans & np.uint64(0xFFFF)
    pair, long = first | second << np.uint64(16), third != layout.NO_THIRD
    # a head: the first two characters, with which several spans may begin
    distinct, head_of = np.unique(pair, return_inverse=True)
    tails = (third | fourth << np.uint64(16) | able << np.uint64(layout.TAIL_OPERATORS_SHIFT))[long]
    ends = np.r_[pair[long][1:] != pair[long][:-1], True][: len(tails)]
    tails |= ends.astype(np.uint64) << np.uint64(layout.LAST)
    able_of_two, goes_on = np.zeros((2, len(distinct)), np.uint64)
    able_of_two[head_of[~long]] = able[~long]
    goes_on[head_of[long]] = 1
    starts, before, heads, position = _make_heads(distinct, able_of_two, goes_on)
    tail_of = np.zeros(len(heads), np.uint32)
    # written backwards: the first tail of a head is written last
    tail_of[position[head_of[long]][::-1]] = np.arange(len(tails), dtype=np.uint32)[::-1]
    row_of = position[head_of]
    row_of[long] = len(heads) + np.arange(len(tails))
    longer = (pair[long] | third[long] << np.uint64(32)) * np.uint64(layout.KEY_FACTOR)
    bits = _make_bitmap(longer >> np.uint64(64 - layout.KNOWN_BITS))
    searchable = {"starts": starts, "before": before, "longer": bits}
    return {**searchable, "heads": heads, "first": tail_of, "tails": tails}, row_of


def _make_heads(
    head: Longs, able: Longs, goes_on: Longs
) -> tuple[Longs, Words, Words, npt.NDArray[np.intp]]:
    """Return `SpanTables.starts`, `before` and `heads`, and each head's position in `heads`."""
    spread = head * np.uint64(layout.PAIR_FACTOR) & np.uint64(0xFFFFFFFF)
    bit, tag = spread >> np.uint64(layout.TAG_BITS), spread & np.uint64((1 << layout.TAG_BITS) - 1)
    starts = _make_bitmap(bit)
    set_bits = np.unpackbits(starts.view(np.uint8), bitorder="little").reshape(-1, 64).sum(1)
    before = np.r_[np.uint64(0), np.cumsum(set_bits, dtype=np.uint64)][: len(starts)]
    # each bit has an entry; where heads share it, that leads to theirs, which are last in the array
    distinct, entry_of, count = np.unique(bit, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(count[entry_of] > 1)
    shared = shared[np.argsort(entry_of[shared], kind="stable")]
    position = entry_of.astype(np.intp)
    position[shared] = len(distinct) + np.arange(len(shared))
    heads = np.zeros(len(distinct) + len(shared), np.uint64)
    heads[position] = (
        tag | able << np.uint64(layout.OPERATORS_SHIFT) | goes_on << np.uint64(layout.GOES_ON)
    )
    is_last = np.r_[entry_of[shared][1:] != entry_of[shared][:-1], True][: len(shared)]
    heads[position[shared[is_last]]] |= np.uint64(1 << layout.FINAL)
    is_first = np.r_[True, is_last[:-1]][: len(shared)]
    heads[entry_of[shared[is_first]]] = position[shared[is_first]].astype(np.uint64) | np.uint64(
        1 << layout.SHARED
    )
    assert len(heads) < 2**layout.SHARED
    return starts, before.astype(np.uint32), heads.astype(np.uint32), position


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


@compiled
def make_alias_tables(
    bounds: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return Walker's alias tables of rows of weights: (probability of keeping j, alias of j).

    Row r is weights[bounds[r]:bounds[r + 1]]; the second array holds positions among all weights.
    """
    keep, alias = np.ones(len(weights)), np.arange(len(weights))
    share, small, large = np.empty((3, len(weights)))
    for r in range(len(bounds) - 1):
        first, last = bounds[r], bounds[r + 1]
        total = 0.0
        small_count, large_count = 0, 0  # of the stacks of shares below 1, and of the others
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
