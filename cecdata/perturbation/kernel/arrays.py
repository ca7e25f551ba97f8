"""The arrays that the kernel reads, works in and writes, as named tuples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
SLACK = 64  # bytes past the end of the output that copies in blocks and words may overwrite


class Sentences(NamedTuple):
    """N sentences of valid UTF-8, none longer than the room's limit."""

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
    mixed: float  # share of pairs struck by several operators
    unchanged: float
    priors: Floats  # [O]
    # [O + 1, places, K] the chance of at most k + 1 edits in a sentence with that number of
    # places; the last plane belongs to mixed pairs
    count_cdf: Floats
    proposals: int = 1  # edits that are drawn for each that is written, see `context`


class Room(NamedTuple):
    """Scratch arrays for one sentence of n ≤ limit code points."""

    points: npt.NDArray[np.uint32]  # [n] code points
    bounds: Ints  # [n + 1] the byte where each starts
    # [n + 2] the character's slot in the tables; 0: none, or the character may be in no span
    slots: npt.NDArray[np.uint32]
    # [n + 1] a bit for each operator that may strike there; an insertion falls before the place
    mask: npt.NDArray[np.uint16]
    spans: Ints  # [rewriting operators, n] the row of the span that each may strike there
    found: npt.NDArray[np.int64]  # [rewriting operators] the number of spans each may strike
    count: npt.NDArray[np.int64]  # [1] places where a span may begin
    maybe: Ints  # [n] these places
    # [n] the head's place in `SpanTables.heads` << 32 | bits of the operators that strike the two
    # characters there << 1 | 1 where a longer span may begin
    begun: npt.NDArray[np.uint64]
    cumulative: Floats  # [O] cumulative probabilities of the operators in this sentence
    cumulative_here: Floats  # [O] the same at one place
    chosen: npt.NDArray[np.int64]  # [K] places that are struck, ascending
    strikes: npt.NDArray[np.int64]  # [K] the operator of each, in a mixed pair
    words: npt.NDArray[np.uint64]  # [K] the draw of each replacement
    standard: npt.NDArray[np.uint16]  # [n + 2] the slot of a standard character, else 0
    places: npt.NDArray[np.int64]  # [proposals] of the proposals for an edit
    drawn: npt.NDArray[np.uint64]  # [proposals] the draws of their replacements
    weights: Floats  # [proposals] and their factors
    bonds: Bytes  # [n + 1] the code of the pair that ends at each place, see `context`
    base: npt.NDArray[np.float32]  # [n] the factor of each place, apart from its characters
    worth: npt.NDArray[np.float32]  # [O, n] an operator's factors, summed up to each place
    added: npt.NDArray[np.int64]  # [1] bits of the operators whose row of `worth` is filled
    # the source's code points from its first edit to its last; in `context`, slots of proposals
    written: npt.NDArray[np.uint32]
    previous: npt.NDArray[np.int64]  # rows of a Levenshtein matrix
    current: npt.NDArray[np.int64]

    @classmethod
    def of(cls, limit: int, operators: int, rewriting: int, most: int, proposals: int) -> Room:
        """Return room for sentences of at most `limit` code points and `most` edits of a pair."""
        longest = limit + 3 + 2 * most
        return cls(
            points=np.empty(limit + 1, np.uint32),
            bounds=np.empty(limit + 2, np.int32),
            slots=np.empty(limit + 3, np.uint32),
            mask=np.empty(limit + 2, np.uint16),
            spans=np.empty((rewriting, limit + 1), np.int32),
            found=np.empty(rewriting, np.int64),
            count=np.empty(1, np.int64),
            maybe=np.empty(limit + 1, np.int32),
            begun=np.empty(limit + 1, np.uint64),
            cumulative=np.empty(operators),
            cumulative_here=np.empty(operators),
            chosen=np.empty(most, np.int64),
            strikes=np.empty(most, np.int64),
            words=np.empty(most, np.uint64),
            standard=np.empty(limit + 3, np.uint16),
            places=np.empty(proposals, np.int64),
            drawn=np.empty(proposals, np.uint64),
            weights=np.empty(proposals),
            bonds=np.empty(limit + 2, np.uint8),
            base=np.empty(limit + 2, np.float32),
            worth=np.empty((operators, limit + 2), np.float32),
            added=np.zeros(1, np.int64),
            written=np.empty(max(longest, proposals), np.uint32),
            previous=np.empty(longest, np.int64),
            current=np.empty(longest, np.int64),
        )


class Output(NamedTuple):
    """The output: P pairs and their edits, in order.

    `operator`: its index, O for mixed, O + 1 for unchanged, -1 if none could strike (the source
    is then empty). `old` and `new` are rows of the tables' texts.
    """

    offsets: Ints  # [P + 1] of bytes in `data`
    data: Bytes  # sources, with `SLACK` to spare
    operator: npt.NDArray[np.int8]  # [P]
    distance: npt.NDArray[np.int16]  # [P]
    edits: Ints  # [P + 1] of edits
    start: Ints  # [edits]
    end: Ints
    old: Ints
    new: Ints
    struck: npt.NDArray[np.int8]
    kind: npt.NDArray[np.int8]

    @classmethod
    def of(cls, pairs: int, edits: int, room: int) -> Output:
        """Return room for these numbers of pairs, edits and bytes."""
        offsets, first = np.empty((2, pairs + 1), np.int32)
        start, end, old, new = np.empty((4, edits), np.int32)
        struck, kind = np.empty((2, edits), np.int8)
        return cls(
            offsets,
            np.empty(room + SLACK, np.uint8),
            np.empty(pairs, np.int8),
            np.empty(pairs, np.int16),
            first,
            start,
            end,
            old,
            new,
            struck,
            kind,
        )
