"""The compiled confusion sets as the kernel reads them: named tuples of flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.uint64]

# Meaning of `Tables.code_points[cp]`: what matters for where an insertion may fall, or a slot.
PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH = 0, 1, 2, 3, 4
# Of `Tables.candidates`.
TEXT_BITS, KIND_BITS, KEEP_BITS = 16, 5, 22
FIRST_SLOT = 8  # slot s of a character is code_points[cp] - FIRST_SLOT + 1; slot 0 is "anything"
# Of `SpanTables.candidates`, beside KIND_BITS and KEEP_BITS.
SPAN_TEXT_BITS, COST_BITS, ALIAS_BITS = 20, 3, 14
KNOWN_BITS = 19  # of a bitmap: 64 KiB stay in the cache
SPAN_BITS = 20  # of the number of a span
FIRST_SHIFT, OPERATORS_SHIFT, ALONE = 32, 52, 63  # of and in `SpanTables.heads`
LAST = 63  # in `SpanTables.tails`, which has its operators where `heads` has them
NO_THIRD = 0xFFFF  # for a slot, where a span has two characters
# An odd number whose product with a key spreads it over the upper bits (the golden ratio).
KEY_FACTOR = 0x9E3779B97F4A7C15


class SpanTables(NamedTuple):
    """What the kernel reads of operators that rewrite spans of two to four characters.

    Spans are numbered so that those with the same first two characters stand together: these two
    by themselves, and then each span before those that it begins with.
    """

    row: npt.NDArray[np.int8]  # [O] the operator's row in `rows`, or -1
    operator: npt.NDArray[np.uint16]  # [rewriting operators] the other way round
    starts: Longs  # [words] a bitmap of the hashed first two characters of every span
    longer: Longs  # [words] a bitmap of the hashed first three characters of every longer one
    # [H] open addressing over the first two: their slots, 16 bits each | the first span << 32 | row
    # bits of what strikes these two alone << 52 | 1 << 63 where no span is longer; or 0
    heads: Longs
    # [spans] third slot | fourth << 16, 0 where there is none, NO_THIRD where there is no third |
    # row bits of its operators << 52 | 1 << 63 where the next span begins otherwise
    tails: Longs
    # [rewriting operators, spans, 4] first candidate, number of candidates, text, characters
    rows: Ints
    # [C] text | kind << 20 | cost << 25 | alias, as a place in the row << 28 | keep << 42
    candidates: Longs
    texts: Longs  # [T, 3] UTF-8, lowest byte first, in two words, and its number of bytes
    points: npt.NDArray[np.uint32]  # [T, 4] code points


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
    spans: SpanTables
