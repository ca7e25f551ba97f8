"""Spans that no operator may change: URLs, e-mail addresses, Latin words, numbers, names.

A word W is letters and digits of either width. A protected span is

    W, then any of [-_]+ W, [./'’@&+·°] W and, from digit to digit, [,:：．~～／－—] W
    before a digit one of $￥¥€£+-−±＋－, after it one of %％‰℃℉°
    after a letter +, ++ or #
    after :// or a leading www. all of !-~, up to the last [0-9A-Za-z/=&#_-]

so 3.14, 12:30, 2024-01-02, 50%, -5℃, iPhone15, C++, Wi-Fi, a.b@c.cn and https://a.cn/?q=1 are one
each. Names are protected wherever they occur, within words and in any width, too. Numbers in Han
characters (三十) are text like any other. Typed placeholders such as <ADDR> are known to the kernel
itself.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError
from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Points, code_point
from cecdata.corpus.normalise import judged_form, normalise_text

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.uint64]

_LONGEST_NAME = 256
_BMP = 0x10000
FIRST, FURTHER = 1, 2  # marks: a span begins here; within a span; 0 is outside
_STATE_BITS = 21  # room for a code point below the state in a key
_KEY_FACTOR = 0x9E3779B97F4A7C15  # spreads a key over the upper bits (the golden ratio)


@dataclass(frozen=True, slots=True)
class Names:
    """A trie in an open-addressing table: [H] state << 21 | code point, and the next state.

    `ends` [states] is 1 where a name ends; state 0 is the start. `starts` is a bitmap of the first
    code points. Without names, `keys` is empty.
    """

    keys: Longs
    next: Ints
    ends: Bytes
    starts: Longs

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """Return the trie of these names."""
        children: dict[tuple[int, int], int] = {}
        ends = {0: 0}
        starts = np.zeros(0x110000 // 64, np.uint64)
        for name in (name.translate(_forms()) for name in names):
            starts[ord(name[0]) >> 6] |= np.uint64(1) << np.uint64(ord(name[0]) & 63)
            state = 0
            for sign in name:
                state = children.setdefault((state, ord(sign)), len(children) + 1)
                ends.setdefault(state, 0)
            ends[state] = 1
        packed = [state << _STATE_BITS | point for state, point in children]
        size = 2 ** max(2, (2 * len(packed)).bit_length()) if packed else 0
        keys, following = np.full(size, 2**64 - 1, np.uint64), np.zeros(size, np.int32)
        _insert(keys, following, np.array(packed, np.uint64), np.array([*children.values()], "i4"))
        return cls(keys, following, np.array([ends[s] for s in sorted(ends)], np.uint8), starts)


@dataclass(frozen=True, slots=True)
class Protection:
    """The protected spans and names of a build; threads may share it."""

    spans: bool
    names: Names

    @classmethod
    def of(cls, spans: bool, names: Sequence[str]) -> Protection:
        """Return the protection of these names and, if `spans`, of spans by their shape."""
        forms = {normalise_text(name) for name in names}
        held = sorted(form for form in forms if isinstance(form, str) and form)
        return cls(spans, Names.of(held))

    def marks(self, data: Bytes, offsets: Ints) -> Bytes:
        """Return a mark for each code point of the sentences; an empty array if all are free.

        The bytes between the first and the last offset must be valid UTF-8.
        """
        if not len(self.names.keys) and not self.spans:
            return np.zeros(0, np.uint8)
        held = np.zeros(int(offsets[-1]) - int(offsets[0]), np.uint8)
        longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
        points = np.empty(longest + 4, np.uint32)
        names = self.names
        count, some = _mark(
            data, offsets, points, self.spans, names.keys, names.next, names.ends, names.starts,
            _folds(), held,
        )  # fmt: skip
        return held[: count if some else 0]


def _forms() -> dict[int, int]:
    """Return the judged form of each character of the BMP that is judged as one other."""
    forms = judged_form().items()
    return {code: ord(form) for code, form in forms if len(form) == 1 and code < _BMP}


@functools.cache
def _folds() -> Points:
    """Return the code point that each one of the BMP is judged as."""
    table = np.arange(_BMP, dtype=np.uint32)
    table[list(_forms())] = list(_forms().values())
    return table


_NO_NAMES = Names(*(np.zeros(0, kind) for kind in ("u8", "i4", "u1", "u8")))
NOTHING = Protection(False, _NO_NAMES)  # protects nothing


def spans_of(text: str, protection: Protection) -> list[tuple[int, int]]:
    """Return the protected spans of one text; overlapping spans are merged.

    >>> text = "3.14 是圆周率，见 https://a.cn/?q=1，或问张三丰。"
    >>> [text[start:end] for start, end in spans_of(text, Protection.of(True, ["张三丰"]))]
    ['3.14', 'https://a.cn/?q=1', '张三丰']
    """
    raw = np.frombuffer(text.encode() or b"\0", np.uint8)
    marks = protection.marks(raw, np.array([0, len(text.encode())], np.int32)).tolist()
    spans: list[tuple[int, int]] = []
    for at, held in enumerate(marks):
        if held == FIRST:
            spans.append((at, at + 1))
        elif held == FURTHER:
            spans[-1] = spans[-1][0], at + 1
    return spans


def read_names(path: Path) -> tuple[str, ...]:
    """Return the names in a file, which has one per line; sorted, each once.

    Raises InputError if the file cannot be read, has no name, or has an impossible one.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 text file") from error
    names = set()
    for number, line in enumerate(lines, 1):
        name = normalise_text(line)
        if not isinstance(name, str):
            raise InputError(
                f"{path}:{number}: {name.reason}, {name.detail}: remove it from the name"
            )
        if len(name) > _LONGEST_NAME:
            raise InputError(
                f"{path}:{number}: a name of {len(name)} characters, at most {_LONGEST_NAME}: "
                "write one name per line"
            )
        names.add(name)
    names.discard("")
    if not names:
        raise InputError(f"{path} has no name: write one on each line")
    return tuple(sorted(names))


@compiled
def _insert(keys: Longs, following: Ints, packed: Longs, states: Ints) -> None:
    """Put the edges of a trie into an open-addressing table, which is never full."""
    empty, wrap = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(max(len(keys), 1) - 1)
    for i in range(len(packed)):
        at = ((packed[i] * np.uint64(_KEY_FACTOR)) >> np.uint64(32)) & wrap
        while keys[at] != empty:
            at = (at + np.uint64(1)) & wrap
        keys[at], following[at] = packed[i], states[i]


@compiled
def _mark(
    data: Bytes,
    offsets: Ints,
    points: Points,
    spans: bool,
    keys: Longs,
    following: Ints,
    ends: Bytes,
    starts: Longs,
    folds: Points,
    marks: Bytes,
) -> tuple[int, bool]:
    """Write all marks; return the number of code points, and whether any may be marked."""
    base, some = 0, False
    for row in range(len(offsets) - 1):
        n, words = _decode(data, offsets[row], offsets[row + 1], points)
        if spans and words:
            _mark_spans(points, n, marks, base)
            some = True
        if len(keys):
            some |= _mark_names(points, n, keys, following, ends, starts, folds, marks, base)
        base += n
    return base, some


@compiled
def _decode(data: Bytes, start: int, stop: int, points: Points) -> tuple[int, bool]:
    """Write the code points; return their number, and whether a word may be among them."""
    n, at, end, words = 0, np.uint64(start), np.uint64(stop), False
    while at < end:
        point, at = code_point(data, at)
        if point >= 0x30 and (point < 0x800 or _is_word(point)):  # a false hit does no harm
            words = True
        points[n] = point
        n += 1
    return n, words


@compiled
def _is_digit(point: np.uint32) -> bool:
    return bool(0x30 <= point <= 0x39 or 0xFF10 <= point <= 0xFF19)


@compiled
def _is_word(point: np.uint32) -> bool:
    """Return whether a code point is a letter or a digit, of either width."""
    if point < 0x80:
        return bool(0x30 <= point <= 0x39 or 0x61 <= (point | 0x20) <= 0x7A)
    if point >= 0xFF10:
        return bool(point <= 0xFF19 or 0xFF21 <= point <= 0xFF3A or 0xFF41 <= point <= 0xFF5A)
    return bool(0xC0 <= point <= 0x24F and point not in (0xD7, 0xF7))


@compiled
def _mark_spans(points: Points, n: int, marks: Bytes, base: int) -> None:
    """Mark the spans of one sentence that are known by their shape."""
    done = i = 0
    while i < n:
        if not _is_word(points[i]):
            i += 1
            continue
        start = i
        if i > done and _is_digit(points[i]) and _is_sign(points[i - 1]):
            start = i - 1
        done = _end(points, i, n)
        marks[base + start] = FIRST
        for j in range(start + 1, done):
            marks[base + j] = FURTHER
        i = done


@compiled
def _end(points: Points, i: int, n: int) -> int:
    """Return the end of the span whose first word starts at i."""
    j = i + 1
    while j < n:
        if _is_word(points[j]):
            j += 1
            continue
        k = _past_joint(points, j, n)
        if k == j:
            break
        j = k + 1
    if _is_digit(points[j - 1]):
        if j < n and _is_unit(points[j]):
            j += 1
    elif j < n and points[j] == 0x23:  # C#
        j += 1
    else:  # C++
        most = min(n, j + 2)
        while j < most and points[j] == 0x2B:
            j += 1
    if j + 2 < n and points[j] == 0x3A and points[j + 1] == 0x2F and points[j + 2] == 0x2F:
        return _url_end(points, j + 3, n)
    if i + 3 < n and points[i + 3] == 0x2E:
        w = (points[i] | 0x20) == 0x77 and (points[i + 1] | 0x20) == 0x77
        if w and (points[i + 2] | 0x20) == 0x77:
            return max(j, _url_end(points, i, n))
    return j


@compiled
def _past_joint(points: Points, j: int, n: int) -> int:
    """Return the start of the word that a joint at j attaches; j itself if there is no joint."""
    point, k = points[j], j + 1
    if point in (0x2D, 0x5F):  # -_
        while k < n and points[k] in (0x2D, 0x5F):
            k += 1
    elif point in (0x2E, 0x2F, 0x27, 0x2019, 0x40, 0x26, 0x2B, 0xB7, 0xB0):  # ./'’@&+·°
        pass
    elif point in (0x2C, 0x3A, 0xFF1A, 0xFF0E, 0x7E, 0xFF5E, 0xFF0F, 0xFF0D, 0x2014):
        # ,:：．~～／－—
        if k >= n or not (_is_digit(points[j - 1]) and _is_digit(points[k])):
            return j
    else:
        return j
    return k if k < n and _is_word(points[k]) else j


@compiled
def _is_sign(point: np.uint32) -> bool:
    """Return whether a code point is one of $￥¥€£ + - − ± ＋－."""
    return point in (0x24, 0xFFE5, 0xA5, 0x20AC, 0xA3, 0x2B, 0x2D, 0x2212, 0xB1, 0xFF0B, 0xFF0D)


@compiled
def _is_unit(point: np.uint32) -> bool:
    """Return whether a code point is one of % ％ ‰ ℃ ℉ °."""
    return point in (0x25, 0xFF05, 0x2030, 0x2103, 0x2109, 0xB0)


@compiled
def _url_end(points: Points, i: int, n: int) -> int:
    """Return the end of the visible ASCII from i on, without trailing punctuation."""
    j = i
    while j < n and 0x21 <= points[j] <= 0x7E:
        j += 1
    while j > i:
        last = points[j - 1]
        if _is_word(last) or last in (0x2F, 0x3D, 0x26, 0x23, 0x5F, 0x2D):  # /=&#_-
            break
        j -= 1
    return j


@compiled
def _mark_names(
    points: Points,
    n: int,
    keys: Longs,
    following: Ints,
    ends: Bytes,
    starts: Longs,
    folds: Points,
    marks: Bytes,
    base: int,
) -> bool:
    """Mark every occurrence of every name, and return whether there is one."""
    some, wrap = False, np.uint64(len(keys) - 1)
    empty = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(n):
        first = folds[points[i]] if points[i] < _BMP else points[i]
        if not (starts[first >> 6] >> np.uint64(first & np.uint32(63))) & np.uint64(1):
            continue
        state, j, end = np.uint64(0), i, i
        while j < n:
            point = folds[points[j]] if points[j] < _BMP else points[j]
            key = state << np.uint64(_STATE_BITS) | np.uint64(point)
            at = ((key * np.uint64(_KEY_FACTOR)) >> np.uint64(32)) & wrap
            while keys[at] != key and keys[at] != empty:
                at = (at + np.uint64(1)) & wrap
            if keys[at] == empty:
                break
            state = np.uint64(following[at])
            j += 1
            if ends[state]:
                end = j
        if end > i:
            some = True
            marks[base + i] = max(marks[base + i], np.uint8(FIRST))
            for k in range(i + 1, end):
                marks[base + k] = FURTHER
    return some
