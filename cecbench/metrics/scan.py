"""A compiled pass over the code points of a four-column file, which creates no strings of its rows.

Most scorers count from a few numbers per row: the lengths in characters, and how many positions
have an error, are changed, are both, and are corrected. Only rows that are needed as text are cut
out. Loading the compiled code pays from a few megabytes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.base import Flags, columns
from cecbench.metrics.rows import BoolArray, IntArray, Positions, hashes_of
from cecdata.common.kernels.jit import compiled

Codes = NDArray[np.uint32]
Facts = NDArray[np.int32]

#: columns of the facts: where source, target, prediction begin and the row ends (characters of the
#: block); their lengths; positions with an error, changed, both, and set right, to the end of the
#: shortest; whether source ≠ target, source ≠ prediction, target ≠ prediction; positions with an
#: error to the end of the shorter of source and target
COLUMNS = (
    "source_at",
    "target_at",
    "prediction_at",
    "end",
    "source_chars",
    "target_chars",
    "prediction_chars",
    "gold",
    "changed",
    "detected",
    "corrected",
    "error",
    "touched",
    "wrong",
    "gold_alone",
)
_TAB, _LINE = 9, 10


@dataclass(frozen=True, slots=True)
class Scan:
    """The facts of a block of rows.

    text: its lines. facts: int32, shape (rows, len(COLUMNS)). ids: hashes of the ids, int64.
    identity: the lines without the predictions, of which the digest of a benchmark is made.
    """

    text: str
    facts: Facts
    ids: NDArray[np.int64]
    identity: bytes

    def __len__(self) -> int:
        return len(self.facts)

    def column(self, name: str) -> NDArray[np.int32]:
        """Return one column of the facts."""
        values: NDArray[np.int32] = self.facts[:, COLUMNS.index(name)]
        return values

    def texts(self, row: int) -> tuple[str, str, str]:
        """Return source, target and prediction of a row."""
        source, target, prediction, end = self.facts[row, :4].tolist()
        text = self.text
        return text[source : target - 1], text[target : prediction - 1], text[prediction:end]


def scan(raw: bytes) -> Scan | None:
    r"""Return the facts of a block of whole lines; None if a line is malformed or there is a `\r`.

    Such a block is left to `rows.parse`, which names the line.

    >>> block = scan("1\t己经\t已经\t已经\n".encode())
    >>> block.column("gold").tolist(), block.column("corrected").tolist(), block.texts(0)
    ([1], [1], ('己经', '已经', '已经'))
    >>> scan(b"1\ta\ta\n") is None
    True
    """
    if not raw.endswith(b"\n"):
        raw += b"\n"
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    marks = np.flatnonzero((codes == _TAB) | (codes == _LINE)).astype(np.int32)
    if len(marks) % 4 or "\r" in text:
        return None
    facts = np.zeros((len(marks) // 4, len(COLUMNS)), dtype=np.int32)
    if not _fill(codes, marks, facts):
        return None
    starts = [0, *(facts[:-1, 3] + 1).tolist()]
    sources, predictions = (facts[:, column].tolist() for column in (0, 2))
    ids = (text[a : b - 1] for a, b in zip(starts, sources, strict=True))
    identity = "\n".join([text[a : b - 1] for a, b in zip(starts, predictions, strict=True)])
    return Scan(text, facts, hashes_of(ids), f"{identity}\n".encode())


@compiled
def _different(codes: Codes, a: int, b: int, count: int) -> int:
    """Return how many of the `count` characters from `a` differ from those from `b`."""
    different = 0
    for at in range(count):
        different += codes[a + at] != codes[b + at]
    return different


@compiled
def _fill(codes: Codes, marks: NDArray[np.int32], facts: Facts) -> bool:
    """Write the facts of every row; return whether all have four cells, an id and a source."""
    start = 0
    for number in range(facts.shape[0]):
        source, target, prediction, end = marks[4 * number : 4 * number + 4]
        tabs = (codes[source] == _TAB) & (codes[target] == _TAB) & (codes[prediction] == _TAB)
        if not tabs or codes[end] != _LINE or source == start or target == source + 1:
            return False
        start = end + 1
        s, t, p = source + 1, target + 1, prediction + 1
        of_s, of_t, of_p = target - s, prediction - t, end - p
        row = facts[number]
        row[0], row[1], row[2], row[3] = s, t, p, end
        row[4], row[5], row[6] = of_s, of_t, of_p
        gold = _different(codes, s, t, min(of_s, of_t))
        changed = _different(codes, s, p, min(of_s, of_p))
        row[14], row[11], row[12] = gold, of_s != of_t or gold > 0, of_s != of_p or changed > 0
        if not row[11] and not row[12]:
            continue
        row[13] = of_t != of_p or _different(codes, t, p, of_t) > 0
        # Local names stay in registers.
        shortest, gold, changed, detected, corrected = min(of_s, of_t, of_p), 0, 0, 0, 0
        for at in range(shortest):
            wrong, moved = codes[s + at] != codes[t + at], codes[s + at] != codes[p + at]
            gold += wrong
            changed += moved
            detected += wrong & moved
            corrected += wrong & moved & (codes[t + at] == codes[p + at])
        row[7], row[8], row[9], row[10] = gold, changed, detected, corrected
    return True


#: Strings of equal length that differ in at most this many places are that many edits apart.
_PLAIN_DISTANCE = 2


def lengths_differ(block: Scan) -> bool:
    """Return whether the three strings of some row have different lengths."""
    target, prediction = _same_length(block)
    return not bool((target & prediction).all())


def under_policy(block: Scan, policy: str) -> tuple[Positions, Flags]:
    """Return positions and whole-string comparisons of the rows that a policy keeps.

    The policies are those of `apply_policy`: `revert` leaves out rows whose target has another
    length and puts the source in place of a prediction of another length, `drop` leaves out both,
    `strict` keeps every row.
    """
    target, prediction = _same_length(block)
    kept: BoolArray = np.ones(len(block), dtype=np.bool_)
    gold, changed, detected, corrected = (
        block.column(name).astype(np.int64) for name in ("gold", "changed", "detected", "corrected")
    )
    error, touched, wrong = (
        block.column(name).astype(np.bool_) for name in ("error", "touched", "wrong")
    )
    if policy == "revert":
        kept = target
        gold = block.column("gold_alone").astype(np.int64)  # the source replaces the prediction
        changed, detected, corrected = (n * prediction for n in (changed, detected, corrected))
        touched, wrong = touched & prediction, np.where(prediction, wrong, error)
    elif policy == "drop":
        kept = target & prediction
    where = Positions(gold[kept], changed[kept], detected[kept], corrected[kept])
    return where, (error[kept], touched[kept], ~wrong[kept])


def behaviour_of(block: Scan) -> IntArray:
    """Return what `behaviour.count` returns for the block's rows."""
    clean, touched = block.column("error") == 0, block.column("touched") == 1
    chars = block.column("source_chars").astype(np.int64)
    answer = block.column("prediction_chars")
    edits = block.column("changed") * (clean & touched)
    alike = (chars == answer) & (block.column("changed") <= _PLAIN_DISTANCE)
    for index in np.flatnonzero(clean & touched & ~alike).tolist():
        source, _, prediction = block.texts(index)
        edits[index] = Levenshtein.distance(source, prediction)
    return columns(
        np.ones(len(block), dtype=np.int64),
        clean,
        clean & touched,
        chars * clean,
        edits.astype(np.int64),
        chars != answer,
        ~touched,
        answer == 0,
    )


def _same_length(block: Scan) -> tuple[BoolArray, BoolArray]:
    """Return per row: whether the target, and whether the prediction, has the source's length."""
    source = block.column("source_chars")
    return block.column("target_chars") == source, block.column("prediction_chars") == source
