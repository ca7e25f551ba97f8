"""Spans that no operator may change: URLs, e-mail addresses, Latin words, numbers.

A word W is letters and digits of either width. A protected span is

    W, then any of [-_]+ W, [./'’@&+·°] W and, from digit to digit, [,:：．~～／－—] W
    before a digit one of $￥¥€£+-−±＋－, after it one of %％‰℃℉°
    after a letter +, ++ or #
    after :// or a leading www. all of !-~, up to the last [0-9A-Za-z/=&#_-]

so 3.14, 12:30, 2024-01-02, 50%, -5℃, iPhone15, C++, Wi-Fi, a.b@c.cn and https://a.cn/?q=1 are one
each. Numbers in Han characters (三十) are text like any other. The kernel itself knows typed
placeholders such as <ADDR>.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cecdata.common.kernels import Bytes, Points, compiled, read_code_point

Ints = npt.NDArray[np.int32]

# $￥¥€£+-−±＋－ and %％‰℃℉°
_SIGNS = (0x24, 0xFFE5, 0xA5, 0x20AC, 0xA3, 0x2B, 0x2D, 0x2212, 0xB1, 0xFF0B, 0xFF0D)
_UNITS = (0x25, 0xFF05, 0x2030, 0x2103, 0x2109, 0xB0)
FIRST, FURTHER = 1, 2  # marks: a span begins here; within a span; 0 is outside


def mark_spans(data: Bytes, offsets: Ints) -> Bytes:
    """Return 0, FIRST or FURTHER per code point of the sentences; nothing if all would be 0.

    The bytes between the first and the last offset must be valid UTF-8.
    """
    marks = np.zeros(int(offsets[-1]) - int(offsets[0]), np.uint8)
    longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
    count, has_marks = _mark_rows(data, offsets, np.empty(longest + 4, np.uint32), marks)
    return marks[: count if has_marks else 0]


@compiled
def _mark_rows(data: Bytes, offsets: Ints, points: Points, marks: Bytes) -> tuple[int, bool]:
    """Write the marks of spans; return the number of code points, and whether any is marked."""
    base, any_marked = 0, False
    for row in range(len(offsets) - 1):
        n, words = _decode(data, offsets[row], offsets[row + 1], points)
        if words:
            _mark_spans(points, n, marks, base)
            any_marked = True
        base += n
    return base, any_marked


@compiled
def _decode(data: Bytes, start: int, stop: int, points: Points) -> tuple[int, bool]:
    """Write the code points; return their number, and whether a word may be among them."""
    n, at, end, words = 0, np.uint64(start), np.uint64(stop), False
    while at < end:
        point, at = read_code_point(data, at)
        # a false hit does no harm
        if point >= 0x30 and (point < 0x800 or _is_word_character(point)):
            words = True
        points[n] = point
        n += 1
    return n, words


@compiled
def _is_digit(point: np.uint32) -> bool:
    return bool(0x30 <= point <= 0x39 or 0xFF10 <= point <= 0xFF19)


@compiled
def _is_word_character(point: np.uint32) -> bool:
    """Return whether a code point is a Latin letter or a digit, of either width."""
    if point < 0x80:
        return bool(0x30 <= point <= 0x39 or 0x61 <= (point | 0x20) <= 0x7A)
    if point >= 0xFF10:
        return bool(point <= 0xFF19 or 0xFF21 <= point <= 0xFF3A or 0xFF41 <= point <= 0xFF5A)
    return bool(0xC0 <= point <= 0x24F and point not in (0xD7, 0xF7))  # ×÷


@compiled
def _mark_spans(points: Points, n: int, marks: Bytes, base: int) -> None:
    """Mark the spans of one sentence that are known by their shape."""
    done = i = 0
    while i < n:
        if not _is_word_character(points[i]):
            i += 1
            continue
        start = i
        if i > done and _is_digit(points[i]) and points[i - 1] in _SIGNS:
            start = i - 1
        done = _find_span_end(points, i, n)
        marks[base + start] = FIRST
        for j in range(start + 1, done):
            marks[base + j] = FURTHER
        i = done


@compiled
def _find_span_end(points: Points, i: int, n: int) -> int:
    """Return the end of the span whose first word starts at i."""
    j = i + 1
    while j < n:
        if _is_word_character(points[j]):
            j += 1
            continue
        next_word = _pass_joint(points, j, n)
        if next_word == j:
            break
        j = next_word + 1
    if _is_digit(points[j - 1]):
        if j < n and points[j] in _UNITS:
            j += 1
    elif j < n and points[j] == 0x23:  # C#
        j += 1
    else:  # C++
        most = min(n, j + 2)
        while j < most and points[j] == 0x2B:
            j += 1
    if j + 2 < n and points[j] == 0x3A and points[j + 1] == 0x2F and points[j + 2] == 0x2F:  # ://
        return _find_url_end(points, j + 3, n)
    if i + 3 < n and points[i + 3] == 0x2E:  # www.
        two = (points[i] | 0x20) == 0x77 and (points[i + 1] | 0x20) == 0x77
        if two and (points[i + 2] | 0x20) == 0x77:
            return max(j, _find_url_end(points, i, n))
    return j


@compiled
def _pass_joint(points: Points, j: int, n: int) -> int:
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
    return k if k < n and _is_word_character(points[k]) else j


@compiled
def _find_url_end(points: Points, i: int, n: int) -> int:
    """Return the end of the visible ASCII from i on, without trailing punctuation."""
    j = i
    while j < n and 0x21 <= points[j] <= 0x7E:
        j += 1
    while j > i:
        last = points[j - 1]
        if _is_word_character(last) or last in (0x2F, 0x3D, 0x26, 0x23, 0x5F, 0x2D):  # /=&#_-
            break
        j -= 1
    return j
