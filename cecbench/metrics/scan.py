"""A compiled pass over the bytes of a four-column file, which creates no strings.

Most scorers count from a few numbers per row: the lengths in characters, and how many positions
have an error, are changed, are both, and are corrected. UTF-8 is compared character by character
without decoding it; only rows that are needed as text are decoded. Loading the compiled code pays
from a few megabytes on.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.base import Flags, columns
from cecbench.metrics.rows import BoolArray, IntArray, Positions
from cecdata.common.kernels.jit import compiled

BLOCK_BYTES = 1 << 18
Bytes = NDArray[np.uint8]
Facts = NDArray[np.int32]

#: columns of the facts: where source, target, prediction begin and the row ends (bytes of the
#: block); their lengths (characters); positions with an error, changed, both, and set right, to
#: the end of the shortest; whether source ≠ target, source ≠ prediction, target ≠ prediction;
#: positions with an error to the end of the shorter of source and target
COLUMNS = (
    *("source_at", "target_at", "prediction_at", "end"),
    *("source_chars", "target_chars", "prediction_chars"),
    *("gold", "changed", "detected", "corrected"),
    *("error", "touched", "wrong"),
    "gold_alone",
)
_TAB, _LINE, _RETURN = 9, 10, 13


@dataclass(frozen=True, slots=True)
class Scan:
    """The facts of a block of rows.

    raw: its bytes. facts: int32, shape (rows, len(COLUMNS)). ids: hashes of the ids, int64.
    identity: the bytes without the predictions, of which the digest of a benchmark is made.
    """

    raw: bytes
    facts: Facts
    ids: NDArray[np.int64]
    identity: Bytes

    def __len__(self) -> int:
        return len(self.facts)

    def column(self, name: str) -> NDArray[np.int32]:
        """Return one column of the facts."""
        return self.facts[:, COLUMNS.index(name)]

    def texts(self, row: int) -> tuple[str, str, str]:
        """Return source, target and prediction of a row."""
        source, target, prediction, end = self.facts[row, :4].tolist()
        cuts = ((source, target - 1), (target, prediction - 1), (prediction, end))
        first, second, third = (self.raw[a:b].decode("utf-8") for a, b in cuts)
        return first, second, third


def scan(raw: bytes) -> Scan | None:
    r"""Return the facts of a block of whole lines; None if a line is malformed or there is a `\r`.

    The reader of other files then names the line.

    >>> block = scan("1\t己经\t已经\t已经\n".encode())
    >>> block.column("gold").tolist(), block.column("corrected").tolist(), block.texts(0)
    ([1], [1], ('己经', '已经', '已经'))
    >>> scan(b"1\ta\ta\n") is None
    True
    """
    if not raw.endswith(b"\n"):
        raw += b"\n"
    codes = np.frombuffer(raw, dtype=np.uint8)
    places = np.empty(len(raw), dtype=np.int32)  # room for every byte; unused pages cost no memory
    separators = _separators(codes, places)
    if separators < 0 or separators % 4:
        return None
    rows = separators // 4
    facts = np.zeros((rows, len(COLUMNS)), dtype=np.int32)
    ids = np.empty(rows, dtype=np.int64)
    identity = np.empty(len(raw), dtype=np.uint8)
    used = _scan(codes, places, facts, ids, identity)
    return None if used < 0 else Scan(raw, facts, ids, identity[:used])


def blocks(path: Path) -> Iterator[Scan | None]:
    """Yield the scanned blocks of a file, each of whole lines; None for one that is no table."""
    with path.open("rb") as handle:
        if handle.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            handle.seek(0)
        while raw := handle.read(BLOCK_BYTES):
            yield scan(raw + handle.readline())


@compiled
def _hash(text: Bytes) -> np.int64:
    """Return the 64-bit FNV-1a hash."""
    mixed = np.uint64(0xCBF29CE484222325)
    for byte in text:
        mixed = (mixed ^ np.uint64(byte)) * np.uint64(0x100000001B3)
    return np.int64(mixed)


@compiled
def _follow(raw: Bytes, at: int, count: int) -> bool:
    """Return whether `count` continuation bytes of UTF-8 begin here."""
    seen = 0
    # The block's last byte is a line end, so this never reads past it.
    while seen < count and raw[at + seen] & 0xC0 == 0x80:
        seen += 1
    return seen == count


@compiled
def _rare(raw: Bytes, at: int) -> int:
    """Return the width of a character, not ASCII or a common three-byte one; 0 if malformed."""
    first, second = raw[at], raw[at + 1]
    if first < 0xC2 or first > 0xF4:
        return 0
    if first < 0xE0:
        return 2 if _follow(raw, at + 1, 1) else 0
    if first < 0xF0:  # 0xE0 and 0xED: no overlong form and no surrogate
        sound = second > 0x9F if first == 0xE0 else second < 0xA0
        return 3 if sound and _follow(raw, at + 1, 2) else 0
    sound = (first != 0xF0 or second > 0x8F) and (first != 0xF4 or second < 0x90)
    return 4 if sound and _follow(raw, at + 1, 3) else 0


@compiled
def _separators(raw: Bytes, places: NDArray[np.int32]) -> int:
    """Write the places of tabs and line ends to `places`, and return their number.

    Return −1 if the block is not valid UTF-8 or has a carriage return.
    """
    at, count = 0, 0
    while at < raw.size:
        first = raw[at]
        if 0xE1 <= first <= 0xEF and first != 0xED:
            if raw[at + 1] & 0xC0 != 0x80 or raw[at + 2] & 0xC0 != 0x80:
                return -1
            at += 3
        elif first < 0x80:
            if first == _RETURN:
                return -1
            places[count] = at
            count += (first == _TAB) | (first == _LINE)
            at += 1
        else:
            wide = _rare(raw, at)
            if wide == 0:
                return -1
            at += wide
    return count


@compiled
def _characters(text: Bytes) -> int:
    count = 0
    for byte in text:
        count += (byte & 0xC0) != 0x80
    return count


@compiled
def _differ(first: Bytes, second: Bytes) -> bool:
    """Return whether two texts differ; without an early exit, so that the loop is vectorised."""
    if first.size != second.size:
        return True
    different = False
    for at in range(first.size):
        different |= first[at] != second[at]
    return different


@compiled
def _wide(first: int) -> int:
    """Return the width of a valid character from its first byte."""
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)


@compiled
def _same(raw: Bytes, a: int, b: int, wide: int) -> bool:
    """Return whether `wide` bytes are the same at two places."""
    at = 0
    while at < wide and raw[a + at] == raw[b + at]:
        at += 1
    return at == wide


@compiled
def _shared(raw: Bytes, row: Facts) -> int:
    """Return the number of bytes of the common prefix of the three cells, in whole characters."""
    s, t, p = row[0], row[1], row[2]
    room = min(t - 1 - s, p - 1 - t, row[3] - p)
    at = 0
    while at < room and raw[s + at] == raw[t + at] and raw[s + at] == raw[p + at]:
        at += 1
    while at > 0 and raw[s + at] & 0xC0 == 0x80:
        at -= 1
    return at


@compiled
def _positions(raw: Bytes, row: Facts) -> None:
    """Write the counts of positions of a row whose cells and lengths are known."""
    skipped = _shared(raw, row)
    s, t, p = row[0] + skipped, row[1] + skipped, row[2] + skipped
    left = min(row[4], row[5], row[6]) - _characters(raw[row[0] : s])
    # Local names stay in registers; this loop takes most of the time.
    gold, changed, detected, corrected = 0, 0, 0, 0
    for _ in range(left):
        wide_s, wide_t, wide_p = _wide(raw[s]), _wide(raw[t]), _wide(raw[p])
        is_gold = wide_s != wide_t or not _same(raw, s, t, wide_s)
        is_changed = wide_s != wide_p or not _same(raw, s, p, wide_s)
        gold += is_gold
        changed += is_changed
        if is_gold and is_changed:
            detected += 1
            corrected += wide_t == wide_p and _same(raw, t, p, wide_t)
        s, t, p = s + wide_s, t + wide_t, p + wide_p
    row[7], row[8], row[9], row[10] = gold, changed, detected, corrected
    for _ in range(min(row[4], row[5]) - min(row[4], row[5], row[6])):
        wide_s, wide_t = _wide(raw[s]), _wide(raw[t])
        gold += wide_s != wide_t or not _same(raw, s, t, wide_s)
        s, t = s + wide_s, t + wide_t
    row[14] = gold


@compiled
def _fill(raw: Bytes, row: Facts) -> None:
    """Write the facts of a row whose cells are known."""
    source, target = raw[row[0] : row[1] - 1], raw[row[1] : row[2] - 1]
    prediction = raw[row[2] : row[3]]
    row[4] = row[5] = row[6] = _characters(source)
    row[11], row[12] = _differ(source, target), _differ(source, prediction)
    if row[11] or row[12]:
        row[13] = _differ(target, prediction)
        row[5], row[6] = _characters(target), _characters(prediction)
        _positions(raw, row)


@compiled
def _scan(
    raw: Bytes, places: NDArray[np.int32], facts: Facts, ids: NDArray[np.int64], identity: Bytes
) -> int:
    """Write facts, ids and identity; return the identity's size, −1 if a row is malformed."""
    start, used = 0, 0
    for number in range(facts.shape[0]):
        source, target, prediction, end = places[4 * number : 4 * number + 4]
        tabs = (raw[source] == _TAB) & (raw[target] == _TAB) & (raw[prediction] == _TAB)
        if not tabs or raw[end] != _LINE or source == start or target == source + 1:
            return -1
        ids[number] = _hash(raw[start:source])
        row = facts[number]
        row[0], row[1], row[2], row[3] = source + 1, target + 1, prediction + 1, end
        _fill(raw, row)
        length = prediction - start
        identity[used : used + length] = raw[start:prediction]
        identity[used + length] = _LINE
        used += length + 1
        start = end + 1
    return used


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
    """Return what `base.count_behaviour` returns for the block's rows."""
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
