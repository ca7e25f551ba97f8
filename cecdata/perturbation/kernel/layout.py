"""The arrays of the kernel as named tuples: compiled confusion sets, inputs, scratch, output.

A word with several fields is written as `lowest | next << its first bit | …`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels import inlined
from cecdata.lm.table import Trie

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
SLACK = 64  # bytes past the end of the output that copies in blocks and words may overwrite

# Values of `Tables.code_points[cp]`: a class that limits where an insertion may fall, or, from
# FIRST_SLOT on, a slot.
PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH = 0, 1, 2, 3, 4
# Widths of the fields of `Tables.candidates`.
TEXT_BITS, KIND_BITS, KEEP_BITS = 16, 5, 22
# Operators that fit the 16-bit masks (`Tables.eligible`, `Scratch.mask`), and those that may
# rewrite spans (`SpanTables.heads`, `tails`). CONTRIBUTING says how to widen them.
MOST_OPERATORS, MOST_REWRITING = 16, 8
MOST_KINDS = 2**KIND_BITS - 1
# The slot of a character is code_points[cp] - FIRST_SLOT + 1; frequent ones have the lowest. Slot 0
# is any other character; its row of candidates has the insertions.
FIRST_SLOT = 8
LONGEST = 4  # characters of a span
REACH = 4  # most characters of a word in `kernel.fluency`
FIRST_HAN, HAN = 0x3400, 0x6C00  # the first of the code points of such words, and their number
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


@inlined
def read_bits(word, first, count):
    """Return `count` bits of a 64-bit word, from bit `first` on."""
    return (word >> np.uint64(first)) & np.uint64((1 << count) - 1)


class Language(NamedTuple):
    """A language model of W words for `kernel.fluency`; empty where a recipe has one proposal.

    The trie and the bigrams are those of `cecdata.lm.table.Tables`. Costs are negative
    log-probabilities in steps of `cecdata.lm.kernels.STEP` nats.
    """

    first: Ints  # [HAN] the node of each first character, or -1
    trie: Trie
    cost: Ints  # [W]
    backoff: Ints  # [W] what a word costs more after this one, where they are no bigram
    bigrams: Longs
    bigram_marks: Longs
    bigram_shift: np.uint64
    chance: Floats  # [2N + 1] of an edit that lowers the cost of its sentence by -N .. N steps


class SpanTables(NamedTuple):
    """The tables of operators that rewrite spans of two to four characters.

    H heads: the pairs of characters that spans begin with, whether or not the pair itself is a
    span. The tables that are read at every position are small, so that they stay in the cache.
    """

    column: npt.NDArray[np.int8]  # [O] the operator's column in `rows`, or -1
    operator: npt.NDArray[np.uint16]  # [rewriting operators] the operator of each column of `rows`
    starts: Longs  # [words] a bitmap of the spread heads
    before: Words  # [words] the number of bits set before each word, for the position in `heads`
    longer: Longs  # [words] a bitmap of the hashed first three characters of every longer span
    # [H and more] tag | bits of the operators that edit these two alone | 1 << 21 where a span is
    # longer; or 1 << 22 | position where several heads have one bit: their entries are there, the
    # last with 1 << 23
    heads: Words
    first: Words  # [H and more] the first of the longer spans, in `tails`
    # [longer spans] third slot | fourth << 16, 0 where there is none | bits of its operators << 52
    # | 1 << 63 where the next has another head
    tails: Longs
    # [heads, then longer spans; rewriting operators] first candidate | number of candidates << 22 |
    # text << 36 | characters << 56
    rows: Longs
    # [C, 2] text | kind << 20 | cost << 25 | alias, as a number in the row << 28 | keep << 42; and
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
    model: Language


class Sentences(NamedTuple):
    """N sentences of valid UTF-8, none longer than the scratch's limit."""

    offsets: Ints  # [N + 1] of bytes in `data`
    data: Bytes
    ids: npt.NDArray[np.uint64]  # [N]
    # [code points of all sentences] 0: free; 1: the first of a protected run; 2: a further one
    # of it. Or [0]: all are free.
    protected: Bytes


class Draws(NamedTuple):
    """The inputs of the draws, apart from the ids. O operators, K edits of a pair at most."""

    seed: int
    copies: int
    mixed: float  # share of pairs edited by several operators
    unchanged: float
    priors: Floats  # [O]
    # [O + 1, positions, K] the chance of at most k + 1 edits in a sentence with that number of
    # positions; the last plane belongs to mixed pairs
    count_cdf: Floats
    proposals: int = 1  # edits that are drawn for each that is written, see `fluency`


class Scratch(NamedTuple):
    """Scratch arrays for one sentence of n ≤ limit code points."""

    points: npt.NDArray[np.uint32]  # [n] code points
    bounds: Ints  # [n + 1] the byte where each starts
    # [n + 2] the character's slot in the tables; 0: none, or the character may be in no span
    slots: npt.NDArray[np.uint32]
    # [n + 1] a bit for each operator that may edit there; an insertion falls before the position
    mask: npt.NDArray[np.uint16]
    spans: Ints  # [rewriting operators, n] the row of the span that each may edit there
    span_counts: npt.NDArray[np.int64]  # [rewriting operators] the number of spans each may edit
    count: npt.NDArray[np.int64]  # [1] positions where a span may begin
    maybe: Ints  # [n] these positions
    # [n] the head's position in `SpanTables.heads` << 32 | bits of the operators that edit the two
    # characters there << 1 | 1 where a longer span may begin
    begun: npt.NDArray[np.uint64]
    cumulative: Floats  # [O] cumulative probabilities of the operators in this sentence
    cumulative_here: Floats  # [O] the same at one position
    chosen: npt.NDArray[np.int64]  # [K] positions that are edited, ascending
    operators: npt.NDArray[np.int64]  # [K] the operator of each, in a mixed pair
    randoms: npt.NDArray[np.uint64]  # [K] the draw of each replacement: a word of random bits
    positions: npt.NDArray[np.int64]  # [proposals] of the proposals for an edit
    drawn: npt.NDArray[np.uint64]  # [proposals] the draws of their replacements
    weights: Floats  # [proposals] and their chances
    # [n + 1] the cost of the likeliest words up to each position, and the last of them; the cost
    # of those from each position on, and the first of them; -1 where no word is beside
    ahead: Ints
    word_to: Ints
    behind: Ints
    word_from: Ints
    arcs: Ints  # [n, characters] the word of each length that begins at each position, or -1
    unchanged: Ints  # [n + 1] the cost of the sentence by the words at each position; -1: not known
    reached: Ints  # the least cost up to each position around an edit
    reached_by: Ints  # and its last word
    # the source's code points from its first edit to its last; in `fluency`, those of a proposal
    written: npt.NDArray[np.uint32]
    previous: npt.NDArray[np.int64]  # rows of a Levenshtein matrix
    current: npt.NDArray[np.int64]

    @classmethod
    def make(cls, limit: int, operators: int, rewriting: int, most: int, proposals: int) -> Scratch:
        """Return arrays for sentences of at most `limit` code points and `most` edits of a pair."""
        longest = limit + 3 + 2 * most
        return cls(
            points=np.empty(limit + 1, np.uint32),
            bounds=np.empty(limit + 2, np.int32),
            slots=np.empty(limit + 3, np.uint32),
            mask=np.empty(limit + 2, np.uint16),
            spans=np.empty((rewriting, limit + 1), np.int32),
            span_counts=np.empty(rewriting, np.int64),
            count=np.empty(1, np.int64),
            maybe=np.empty(limit + 1, np.int32),
            begun=np.empty(limit + 1, np.uint64),
            cumulative=np.empty(operators),
            cumulative_here=np.empty(operators),
            chosen=np.empty(most, np.int64),
            operators=np.empty(most, np.int64),
            randoms=np.empty(most, np.uint64),
            positions=np.empty(proposals, np.int64),
            drawn=np.empty(proposals, np.uint64),
            weights=np.empty(proposals),
            ahead=np.empty(limit + 1, np.int32),
            word_to=np.empty(limit + 1, np.int32),
            behind=np.empty(limit + 1, np.int32),
            word_from=np.empty(limit + 1, np.int32),
            arcs=np.empty((limit, REACH), np.int32),
            unchanged=np.empty(limit + 1, np.int32),
            reached=np.empty(LONGEST + 2 * REACH, np.int32),
            reached_by=np.empty(LONGEST + 2 * REACH, np.int32),
            written=np.empty(longest, np.uint32),
            previous=np.empty(longest, np.int64),
            current=np.empty(longest, np.int64),
        )


class Output(NamedTuple):
    """The output: P pairs and their edits, in order.

    `operator`: its index, O for mixed, O + 1 for unchanged, -1 if none could edit the sentence (the
    source is then empty). `old` and `new` are rows of the tables' texts.
    """

    offsets: Ints  # [P + 1] of bytes in `data`
    data: Bytes  # sources, with `SLACK` to spare
    operator: npt.NDArray[np.int8]  # [P]
    distance: npt.NDArray[np.int16]  # [P]
    edits: Ints  # [P + 1] of edits: the number of those before each pair
    start: Ints  # [edits]
    end: Ints
    old: Ints
    new: Ints
    edited_by: npt.NDArray[np.int8]
    kind: npt.NDArray[np.int8]

    @classmethod
    def make(cls, pairs: int, edits: int, size: int) -> Output:
        """Return arrays for these numbers of pairs, edits and bytes of sources."""
        offsets, first_edits = np.empty((2, pairs + 1), np.int32)
        data, operator = np.empty(size + SLACK, np.uint8), np.empty(pairs, np.int8)
        distance = np.empty(pairs, np.int16)
        start, end, old, new = np.empty((4, edits), np.int32)
        edited_by, kind = np.empty((2, edits), np.int8)
        return cls(
            offsets, data, operator, distance, first_edits, start, end, old, new, edited_by, kind
        )
