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

# Meaning of `Tables.code_points[cp]`: what matters for where an insertion may fall, or a slot.
PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH = 0, 1, 2, 3, 4
# Of `Tables.candidates`.
TEXT_BITS, KIND_BITS, KEEP_BITS = 16, 5, 22
# Operators that fit the 16-bit masks (`Tables.eligible`, `Room.mask`), and those of them that may
# rewrite spans (`SpanTables.heads`, `tails`). CONTRIBUTING says how to widen them.
MOST_OPERATORS, MOST_REWRITING = 16, 8
MOST_KINDS = 2**KIND_BITS - 1
FIRST_SLOT = 8  # slot s of a character is code_points[cp] - FIRST_SLOT + 1; slot 0 is "anything"
LONGEST = 4  # characters of a span
# Of `SpanTables.candidates`, beside KIND_BITS and KEEP_BITS.
SPAN_TEXT_BITS, COST_BITS, ALIAS_BITS = 20, 3, 14
# Of `SpanTables.rows`: first candidate, how many, the span's text, its characters.
COUNT_SHIFT, SOURCE_SHIFT, SIZE_SHIFT = 22, 36, 56
KNOWN_BITS = 19  # of a bitmap: 64 KiB stay in the cache
TAG_BITS = 32 - KNOWN_BITS  # what tells a spread pair of slots apart, beside its bit
# Of `SpanTables.heads`; the lower bits of a SHARED one say where its entries begin.
OPERATORS_SHIFT, GOES_ON, SHARED, FINAL = TAG_BITS, 21, 22, 23
TAIL_OPERATORS_SHIFT, LAST = 52, 63  # in `SpanTables.tails`
NO_THIRD = 0xFFFF  # for a slot, where a span has two characters
# Odd numbers whose product with a key spreads it over the upper bits (the golden ratio). The
# shorter is a bijection of 32 bits: the bit in the bitmap and the tag are the whole pair.
KEY_FACTOR, PAIR_FACTOR = 0x9E3779B97F4A7C15, 0x9E3779B1

# Of a pair of neighbours: codes are below EDGE, which stands for a pair with what is no standard
# character; in files a pair is left slot << 13 | right slot.
EDGE, SLOT_BITS = 15, 13


class Context(NamedTuple):
    """The tables of factors by context; empty where a recipe has one proposal."""

    # [T] by text: 1 for the most frequent standard character, 2 for the next; 0 for other texts.
    # Neighbours in running text are frequent, so that the codes that are read lie side by side.
    ranks: Shorts
    codes: Bytes  # [R, R / 2] by ranks, two codes a byte: that of an even right rank is lower
    factors: Floats32  # [9, 16, 16], see `kernel.context`
    weighed: Bytes  # [O] 1 where factors apply to the operator's replacements
    # what a place is worth by the characters alone: the mean factor of its candidates
    of_slot: Floats32  # [O, S]
    of_span: Floats32  # [rows of spans, rewriting operators]


class SpanTables(NamedTuple):
    """The tables of operators that rewrite spans of two to four characters.

    H heads: the pairs of characters that spans begin with, themselves spans or not. The tables that
    are read at every place are small, so that they stay in the cache.
    """

    row: npt.NDArray[np.int8]  # [O] the operator's column in `rows`, or -1
    operator: npt.NDArray[np.uint16]  # [rewriting operators] the other way round
    starts: Longs  # [words] a bitmap of the spread heads
    before: Words  # [words] how many bits are set before each word: the place in `heads`
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
    # [C] one candidate packed in a word, for the kernel waits for little else than this table:
    # its text | its kind << 16 | the other's text << 21 | its kind << 37 | keep << 42
    candidates: Longs
    inserts: Bytes  # [O] 1 where the operator inserts
    cost: Ints  # [O] Levenshtein distance of one edit
    # [T, 2] of one text of at most two code points: its UTF-8, first byte lowest; and
    # bytes | first code point << 8 | second << 32
    texts: Longs
    spans: SpanTables
    context: Context
