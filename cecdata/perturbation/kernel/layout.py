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
Floats32 = npt.NDArray[np.float32]

# Values of `Tables.code_points[cp]`: a class that limits where an insertion may fall, or, from
# FIRST_SLOT on, a slot.
PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH = 0, 1, 2, 3, 4
# Widths of the fields of `Tables.candidates`.
TEXT_BITS, KIND_BITS, KEEP_BITS = 16, 5, 22
# Operators that fit the 16-bit masks (`Tables.eligible`, `Room.mask`), and those of them that may
# rewrite spans (`SpanTables.heads`, `tails`). CONTRIBUTING says how to widen them.
MOST_OPERATORS, MOST_REWRITING = 16, 8
MOST_KINDS = 2**KIND_BITS - 1
# The slot of a character is code_points[cp] - FIRST_SLOT + 1; frequent ones have the lowest. Slot 0
# is any other character; its row of candidates has the insertions.
FIRST_SLOT = 8
LONGEST = 4  # characters of a span
# Widths of the fields of `SpanTables.candidates`, besides KIND_BITS and KEEP_BITS.
SPAN_TEXT_BITS, COST_BITS, ALIAS_BITS = 20, 3, 14
# Of `SpanTables.rows`: first candidate, how many, the span's text, its characters.
COUNT_SHIFT, SOURCE_SHIFT, SIZE_SHIFT = 22, 36, 56
KNOWN_BITS = 19  # of a bitmap: 64 KiB stay in the cache
TAG_BITS = 32 - KNOWN_BITS  # the rest of a spread pair of slots, besides its bit
# Of `SpanTables.heads`; the lower bits of a SHARED head say where its entries begin.
OPERATORS_SHIFT, GOES_ON, SHARED, FINAL = TAG_BITS, 21, 22, 23
TAIL_OPERATORS_SHIFT, LAST = 52, 63  # in `SpanTables.tails`
NO_THIRD = 0xFFFF  # in place of the third slot, where a span has two characters
# Odd numbers (the golden ratio) whose product with a key spreads it over the upper bits.
# Multiplication by PAIR_FACTOR is a bijection of 32 bits, so the bit in the bitmap and the tag
# together identify the pair.
KEY_FACTOR, PAIR_FACTOR = 0x9E3779B97F4A7C15, 0x9E3779B1

# The code of a pair of neighbours is below EDGE; EDGE stands for a pair in which one is not a
# standard character. Files number characters by code point: left << SLOT_BITS | right.
EDGE, SLOT_BITS = 15, 13


class Context(NamedTuple):
    """The tables of factors by context; empty where a recipe has one proposal."""

    # [R, R / 2] by slots of standard characters, two codes a byte: that of an even right slot in
    # the lower bits. They are the R - 1 lowest slots, 0 stands for any other text.
    codes: Bytes
    factors: Floats32  # [9, 16, 16], see `kernel.context`
    weighed: Bytes  # [O] 1 where factors apply to the operator's replacements
    # the mean factor of the candidates of a slot or span, from the characters alone
    of_slot: Floats32  # [O, S]
    of_span: Floats32  # [rows of spans, rewriting operators]


class SpanTables(NamedTuple):
    """The tables of operators that rewrite spans of two to four characters.

    H heads: the pairs of characters that spans begin with, whether or not the pair itself is a
    span. The tables that are read at every place are small, so that they stay in the cache.
    """

    row: npt.NDArray[np.int8]  # [O] the operator's column in `rows`, or -1
    operator: npt.NDArray[np.uint16]  # [rewriting operators] the operator of each column of `rows`
    starts: Longs  # [words] a bitmap of the spread heads
    before: Words  # [words] the number of bits set before each word, for the place in `heads`
    longer: Longs  # [words] a bitmap of the hashed first three characters of every longer span
    # [H and more] tag | bits of the operators that strike these two alone | 1 << 21 where a span is
    # longer; or 1 << 22 | place where several heads have one bit: their entries are there, the
    # last with 1 << 23
    heads: Words
    first: Words  # [H and more] the first of the longer spans, in `tails`
    # [longer spans] third slot | fourth << 16, 0 where there is none | bits of its operators << 52
    # | 1 << 63 where the next has another head
    tails: Longs
    # [heads, then longer spans; rewriting operators] first candidate | number of candidates << 22 |
    # text << 36 | characters << 56
    rows: Longs
    # [C, 2] text | kind << 20 | cost << 25 | alias, as a place in the row << 28 | keep << 42; and
    # the text once more as four rows of `Tables.texts`, 16 bits each, lowest first
    candidates: Longs
    points: npt.NDArray[np.uint32]  # [T, 4] code points of the texts


class Tables(NamedTuple):
    """The tables of all operators. S slots (characters), O operators, C candidates in all.

    A candidate is drawn by Walker's alias method: one draw picks `j` of the row and keeps it
    where the draw's fraction is below `keep[j]`, else takes `alias[j]`.
    """

    code_points: Shorts  # [0x110000] class or slot of each code point
    eligible: Shorts  # [S] bit o set: operator o has candidates
    rows: Ints  # [O, S, 2] first candidate and number of candidates
    # [C] one candidate packed in a word, because the kernel mostly waits for this table:
    # its text | its kind << 16 | the alias's text << 21 | the alias's kind << 37 | keep << 42
    candidates: Longs
    inserts: Bytes  # [O] 1 where the operator inserts
    cost: Ints  # [O] Levenshtein distance of one edit
    # [T, 2] of one text of at most two code points: its UTF-8, first byte lowest; and
    # bytes | first code point << 8 | second << 32
    texts: Longs
    spans: SpanTables
    context: Context
