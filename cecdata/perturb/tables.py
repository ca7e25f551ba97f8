"""Confusion sets compiled to flat arrays for the kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.hanzi.characters import (
    extend_ranges,
    joiner_ranges,
    regional_range,
    standard_characters,
)
from cecdata.operators import OPERATORS, Confusion, Operator

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.uint64]

# Meaning of `code_points[cp]`: what matters for where an insertion may fall, or a slot.
PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH = 0, 1, 2, 3, 4
TEXT_BITS, KIND_BITS, KEEP_BITS = 16, 5, 22
FIRST_SLOT = 8  # slot s of a character is code_points[cp] - FIRST_SLOT + 1; slot 0 is "anything"


class Tables(NamedTuple):
    """What the kernel reads. S slots (characters), O operators, C candidates in all.

    A candidate is drawn by Walker's alias method: one draw picks `j` of the row and keeps it
    where the draw's fraction is below `keep[j]`, else takes `alias[j]`.
    """

    code_points: Shorts  # [0x110000] class or slot of each code point
    eligible: Shorts  # [S] bit o set: operator o has candidates
    rows: Ints  # [O, S, 2] first candidate and number of candidates
    # [C] one candidate packed in a word, for the kernel waits for little else than this table:
    # its text | its kind << 16 | the other's text << 21 | its kind << 37 | keep << 42
    candidates: Longs
    inserts: Bytes  # [O] 1 where the operator inserts
    cost: Ints  # [O] Levenshtein distance of one edit
    # [T, 2] of one text of at most two code points: its UTF-8, first byte lowest; and
    # bytes | first code point << 8 | second << 32
    texts: Longs


@dataclass(frozen=True, slots=True)
class Compiled:
    """The tables with the names that their codes stand for."""

    arrays: Tables
    operators: tuple[str, ...]
    kinds: tuple[str, ...]
    texts: tuple[str, ...]  # [T]; row s is the character of slot s, row 0 the empty string
    sha256: dict[str, str]  # of each operator's confusion set


@cache
def compiled() -> Compiled:
    """The tables of all operators; about a second the first time."""
    return compile_tables(tuple(OPERATORS.values()), standard_characters())


def compile_tables(operators: Sequence[Operator], characters: Sequence[str]) -> Compiled:
    """Flat arrays of these operators' confusion sets over these characters."""
    kinds = tuple(dict.fromkeys(kind for operator in operators for kind in operator.kinds))
    assert len(kinds) < 2**KIND_BITS
    texts = {"": 0} | {character: slot for slot, character in enumerate(characters, 1)}
    rows = {
        (o, slot): list(operator.confusions(character))
        for o, operator in enumerate(operators)
        for character, slot in texts.items()
        if (operator.action == "insert") == (character == "")
    }
    for row in rows.values():
        for item in row:
            texts.setdefault(item.replacement, len(texts))
    assert len(texts) < 2**TEXT_BITS
    slots = len(characters) + 1
    bounds = np.zeros((len(operators), slots, 2), np.int32)
    eligible = np.zeros(slots, np.uint16)
    blocks: list[Longs] = []
    written = 0
    for (o, slot), row in rows.items():
        if not row:
            continue
        bounds[o, slot] = written, len(row)
        eligible[slot] |= 1 << o
        packed = [kinds.index(item.kind) << TEXT_BITS | texts[item.replacement] for item in row]
        blocks.append(_candidates([item.weight for item in row], packed))
        written += len(row)
    arrays = Tables(
        code_points=_code_points(characters),
        eligible=eligible,
        rows=bounds,
        candidates=np.concatenate(blocks),
        inserts=np.array([operator.action == "insert" for operator in operators], np.uint8),
        cost=np.array([operator.cost for operator in operators], np.int32),
        texts=_texts(list(texts)),
    )
    names = tuple(operator.name for operator in operators)
    return Compiled(arrays, names, kinds, tuple(texts), _hashes(names, rows))


def walker(weights: Sequence[float]) -> tuple[list[float], list[int]]:
    """Walker's alias table of a row of weights: (probability of keeping j, what else).

    >>> walker([1.0, 3.0])
    ([0.5, 1.0], [1, 1])
    """
    count, total = len(weights), sum(weights)
    share = [weight * count / total for weight in weights]
    keep, alias = [1.0] * count, list(range(count))
    small = [j for j in range(count) if share[j] < 1]
    large = [j for j in range(count) if share[j] >= 1]
    while small and large:
        less, more = small.pop(), large.pop()
        keep[less], alias[less] = share[less], more
        share[more] -= 1 - share[less]
        (small if share[more] < 1 else large).append(more)
    return keep, alias


def _candidates(weights: Sequence[float], packed: Sequence[int]) -> Longs:
    keep, alias = walker(weights)
    width, most = TEXT_BITS + KIND_BITS, 2**KEEP_BITS - 1
    return np.array(
        [
            own | packed[other] << width | min(int(share * (most + 1)), most) << 2 * width
            for own, share, other in zip(packed, keep, alias, strict=True)
        ],
        np.uint64,
    )


def _texts(texts: Sequence[str]) -> Longs:
    found = np.zeros((len(texts), 2), np.uint64)
    for t, text in enumerate(texts):
        raw = text.encode()
        first, second = (*map(ord, text), 0, 0)[:2]
        found[t] = int.from_bytes(raw, "little"), len(raw) | first << 8 | second << 32
    return found


def _code_points(characters: Sequence[str]) -> Shorts:
    found = np.zeros(0x110000, np.uint16)
    clings = ((CLINGS_BEFORE, extend_ranges()), (CLINGS_AFTER, joiner_ranges()))
    for mark, (firsts, lasts) in clings:
        for low, high in zip(firsts, lasts, strict=True):
            span = found[low : high + 1]
            span[:] = np.where((span != PLAIN) & (span != mark), CLINGS_BOTH, mark)
    low, high = regional_range()
    found[low : high + 1] = REGIONAL
    for slot, character in enumerate(characters, 1):
        found[ord(character)] = FIRST_SLOT + slot - 1
    return found


def _hashes(names: Sequence[str], rows: dict[tuple[int, int], list[Confusion]]) -> dict[str, str]:
    digests = [hashlib.sha256() for _ in names]
    for (o, _), row in rows.items():
        for item in row:
            line = f"{item.source}\t{item.replacement}\t{item.weight:.9g}\t{item.kind}\n"
            digests[o].update(line.encode())
    return {name: digest.hexdigest() for name, digest in zip(names, digests, strict=True)}
