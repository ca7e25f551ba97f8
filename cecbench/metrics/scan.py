"""Reads a block of a four-column file in one pass over its bytes, without making strings.

What most scorers count follows from a few numbers a row: the lengths in characters, and how many
positions have an error, are changed, both, and set right. UTF-8 is compared character by character
as it stands; it is decoded for the few rows alone that somebody wants to look at. The pass is
compiled, and worth its start from a few megabytes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _F = TypeVar("_F", bound=Callable[..., object])

    def njit(*, cache: bool) -> Callable[[_F], _F]:
        """The decorator, for the type checker."""

else:
    from numba import njit

Bytes = NDArray[np.uint8]
Facts = NDArray[np.int32]

#: columns of the facts: where source, target, prediction begin and the row ends (bytes of the
#: block); their lengths (characters); positions with an error, changed, both, and set right, to
#: the end of the shortest; whether source ≠ target, source ≠ prediction, target ≠ prediction;
#: positions with an error to the end of the shorter of source and target
COLUMNS = (
    "source_at", "target_at", "prediction_at", "end",
    "source_chars", "target_chars", "prediction_chars",
    "gold", "changed", "found", "fixed",
    "error", "touched", "wrong", "gold_alone",
)  # fmt: skip
_TAB, _LINE, _RETURN = 9, 10, 13


@dataclass(frozen=True, slots=True)
class Scan:
    """A block as it was read.

    facts: int32, shape (rows, len(COLUMNS)). ids: hashes of the ids, int64. identity: the block
    without its predictions, as the digest of a benchmark takes it.
    """

    raw: bytes
    facts: Facts
    ids: NDArray[np.int64]
    identity: Bytes

    def __len__(self) -> int:
        return len(self.facts)

    def column(self, name: str) -> NDArray[np.int32]:
        """One column of the facts."""
        values: NDArray[np.int32] = self.facts[:, COLUMNS.index(name)]
        return values

    def texts(self, row: int) -> tuple[str, str, str]:
        """Source, target and prediction of a row."""
        source, target, prediction, end = self.facts[row, :4].tolist()
        cuts = ((source, target - 1), (target, prediction - 1), (prediction, end))
        first, second, third = (self.raw[a:b].decode("utf-8") for a, b in cuts)
        return first, second, third


def scan(raw: bytes) -> Scan | None:
    r"""The facts of a block of whole lines; None where some line is not as it should be.

    Then, and where a `\r` stands in it, the block is for the parser that names the line.

    >>> found = scan("1\t己经\t已经\t已经\n".encode())
    >>> found.column("gold").tolist(), found.column("fixed").tolist(), found.texts(0)
    ([1], [1], ('己经', '已经', '已经'))
    >>> scan(b"1\ta\ta\n") is None
    True
    """
    if not raw.endswith(b"\n"):
        raw += b"\n"
    codes = np.frombuffer(raw, dtype=np.uint8)
    places = np.empty(len(raw), dtype=np.int32)  # room for all; what is not filled costs nothing
    found = _separators(codes, places)
    if found < 0 or found % 4:
        return None
    rows = found // 4
    facts = np.zeros((rows, len(COLUMNS)), dtype=np.int32)
    ids = np.empty(rows, dtype=np.int64)
    identity = np.empty(len(raw), dtype=np.uint8)
    used = _scan(codes, places, facts, ids, identity)
    return None if used < 0 else Scan(raw, facts, ids, identity[:used])


def hashes_of(ids: Sequence[str]) -> NDArray[np.int64]:
    """The hashes that a scan gives to these ids, for a block that was parsed instead."""
    texts = [name.encode("utf-8") for name in ids]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return _hashes(np.frombuffer(b"".join(texts), dtype=np.uint8), ends)


@njit(cache=True)
def _hash(text: Bytes) -> np.int64:
    """FNV-1a, 64 bits."""
    mixed = np.uint64(0xCBF29CE484222325)
    for byte in text:
        mixed = (mixed ^ np.uint64(byte)) * np.uint64(0x100000001B3)
    return np.int64(mixed)


@njit(cache=True)
def _hashes(joined: Bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.empty(ends.size, dtype=np.int64)
    start = 0
    for number in range(ends.size):
        found[number] = _hash(joined[start : ends[number]])
        start = ends[number]
    return found


@njit(cache=True)
def _follow(raw: Bytes, at: int, count: int) -> bool:
    """Whether `count` bytes that continue a character stand from here on."""
    found = 0
    # The block's last byte is a line end: whatever is cut off there stops at it.
    while found < count and raw[at + found] & 0xC0 == 0x80:
        found += 1
    return found == count


@njit(cache=True)
def _rare(raw: Bytes, at: int) -> int:
    """Bytes of a character beside ASCII and the common three-byte ones; 0 where it is none."""
    first, second = raw[at], raw[at + 1]
    if first < 0xC2 or first > 0xF4:
        return 0
    if first < 0xE0:
        return 2 if _follow(raw, at + 1, 1) else 0
    if first < 0xF0:  # 0xE0 and 0xED: neither overlong nor half a surrogate pair
        sound = second > 0x9F if first == 0xE0 else second < 0xA0
        return 3 if sound and _follow(raw, at + 1, 2) else 0
    sound = (first != 0xF0 or second > 0x8F) and (first != 0xF4 or second < 0x90)
    return 4 if sound and _follow(raw, at + 1, 3) else 0


@njit(cache=True)
def _separators(raw: Bytes, places: NDArray[np.int32]) -> int:
    """Fills the places of tabs and line ends; gives how many there are.

    −1 where the block is not UTF-8 as Python has it, or holds a carriage return.
    """
    at, found = 0, 0
    while at < raw.size:
        first = raw[at]
        if 0xE1 <= first <= 0xEF and first != 0xED:
            if raw[at + 1] & 0xC0 != 0x80 or raw[at + 2] & 0xC0 != 0x80:
                return -1
            at += 3
        elif first < 0x80:
            if first == _RETURN:
                return -1
            places[found] = at
            found += (first == _TAB) | (first == _LINE)
            at += 1
        else:
            wide = _rare(raw, at)
            if wide == 0:
                return -1
            at += wide
    return found


@njit(cache=True)
def _characters(text: Bytes) -> int:
    count = 0
    for byte in text:
        count += (byte & 0xC0) != 0x80
    return count


@njit(cache=True)
def _differ(first: Bytes, second: Bytes) -> bool:
    """Whether two texts differ; without a way out, so that many bytes are compared at once."""
    if first.size != second.size:
        return True
    different = False
    for at in range(first.size):
        different |= first[at] != second[at]
    return different


@njit(cache=True)
def _wide(first: int) -> int:
    """Bytes of a character that is known to be sound, by its first."""
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)


@njit(cache=True)
def _same(raw: Bytes, a: int, b: int, wide: int) -> bool:
    """Whether the same bytes stand at two places, `wide` of them."""
    at = 0
    while at < wide and raw[a + at] == raw[b + at]:
        at += 1
    return at == wide


@njit(cache=True)
def _shared(raw: Bytes, row: Facts) -> int:
    """Bytes of the whole characters that the three cells begin with alike."""
    s, t, p = row[0], row[1], row[2]
    room = min(t - 1 - s, p - 1 - t, row[3] - p)
    at = 0
    while at < room and raw[s + at] == raw[t + at] and raw[s + at] == raw[p + at]:
        at += 1
    while at > 0 and raw[s + at] & 0xC0 == 0x80:
        at -= 1
    return at


@njit(cache=True)
def _positions(raw: Bytes, row: Facts) -> None:
    """Fills the counts of positions of a row whose cells are known."""
    skipped = _shared(raw, row)
    s, t, p = row[0] + skipped, row[1] + skipped, row[2] + skipped
    left = min(row[4], row[5], row[6]) - _characters(raw[row[0] : s])
    gold, changed, found, fixed = 0, 0, 0, 0  # kept out of memory: most of the time goes here
    for _ in range(left):
        wide_s, wide_t, wide_p = _wide(raw[s]), _wide(raw[t]), _wide(raw[p])
        is_gold = wide_s != wide_t or not _same(raw, s, t, wide_s)
        is_changed = wide_s != wide_p or not _same(raw, s, p, wide_s)
        gold += is_gold
        changed += is_changed
        if is_gold and is_changed:
            found += 1
            fixed += wide_t == wide_p and _same(raw, t, p, wide_t)
        s, t, p = s + wide_s, t + wide_t, p + wide_p
    row[7], row[8], row[9], row[10] = gold, changed, found, fixed
    for _ in range(min(row[4], row[5]) - min(row[4], row[5], row[6])):
        wide_s, wide_t = _wide(raw[s]), _wide(raw[t])
        gold += wide_s != wide_t or not _same(raw, s, t, wide_s)
        s, t = s + wide_s, t + wide_t
    row[14] = gold


@njit(cache=True)
def _fill(raw: Bytes, row: Facts) -> None:
    """Fills the facts of a row whose cells' places are known."""
    source, target = raw[row[0] : row[1] - 1], raw[row[1] : row[2] - 1]
    prediction = raw[row[2] : row[3]]
    row[4] = row[5] = row[6] = _characters(source)
    row[11], row[12] = _differ(source, target), _differ(source, prediction)
    if row[11] or row[12]:
        row[13] = _differ(target, prediction)
        row[5], row[6] = _characters(target), _characters(prediction)
        _positions(raw, row)


@njit(cache=True)
def _scan(
    raw: Bytes, places: NDArray[np.int32], facts: Facts, ids: NDArray[np.int64], identity: Bytes
) -> int:
    """Fills all; gives the bytes of the identity, −1 where some row is not as it should be."""
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
