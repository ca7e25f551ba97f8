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

from cecdata.common.kernels import Bytes, Points, compiled, decode

Ints = npt.NDArray[np.int32]

# $￥¥€£+-−±＋－ and %％‰℃℉°
_SIGNS = (0x24, 0xFFE5, 0xA5, 0x20AC, 0xA3, 0x2B, 0x2D, 0x2212, 0xB1, 0xFF0B, 0xFF0D)
_SCHEME_MARK, _WWW = (0x3A, 0x2F, 0x2F), (0x77, 0x77, 0x77, 0x2E)  # ://, www.
_UNITS = (0x25, 0xFF05, 0x2030, 0x2103, 0x2109, 0xB0)
FIRST, FURTHER = 1, 2  # marks: a span begins here; within a span; 0 is outside


def mark_spans(data: Bytes, offsets: Ints) -> Bytes:
    """Return 0, FIRST or FURTHER per code point of the sentences; nothing if all would be 0.

    The bytes between the first and the last offset must be valid UTF-8.
    """
    marks = np.zeros(int(offsets[-1]) - int(offsets[0]), np.uint8)
    longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
    count, any_marked = _mark_rows(data, offsets, np.empty(longest + 4, np.uint32), marks)
    return marks[: count if any_marked else 0]


@compiled
def _mark_rows(data: Bytes, offsets: Ints, points: Points, marks: Bytes) -> tuple[int, bool]:
    """Write the marks of spans; return the number of code points, and whether any is marked."""
    total, any_marked = 0, False
    for row in range(len(offsets) - 1):
        length = int(decode(data, offsets[row], offsets[row + 1], points))
        any_marked |= _mark_spans(points, length, marks[total:])
        total += length
    return total, any_marked


@compiled
def _is_digit(point: np.uint32) -> bool:
    """Return whether a code point is a digit, of either width."""
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
def _mark_spans(points: Points, length: int, marks: Bytes) -> bool:
    """Mark the spans of one sentence that are known by their shape; return whether it has any."""
    end = at = 0  # the end of the last span, and the place that is looked at
    while at < length:
        if not _is_word_character(points[at]):
            at += 1
            continue
        first = at
        if at > end and _is_digit(points[at]) and points[at - 1] in _SIGNS:
            first = at - 1
        end = _find_span_end(points, at, length)
        marks[first] = FIRST
        for place in range(first + 1, end):
            marks[place] = FURTHER
        at = end
    return end > 0


@compiled
def _find_span_end(points: Points, start: int, length: int) -> int:
    """Return the end of the span whose first word begins at `start`."""
    end = start + 1
    while end < length:
        if _is_word_character(points[end]):
            end += 1
            continue
        next_word = _pass_joint(points, end, length)
        if next_word == end:
            break
        end = next_word + 1
    if _is_digit(points[end - 1]):
        if end < length and points[end] in _UNITS:
            end += 1
    elif end < length and points[end] == 0x23:  # C#
        end += 1
    else:  # C++
        most = min(length, end + 2)
        while end < most and points[end] == 0x2B:
            end += 1
    if _begins_with(points[end:length], _SCHEME_MARK):
        return _find_url_end(points, end + 3, length)
    if _begins_with(points[start:length], _WWW):
        return max(end, _find_url_end(points, start, length))
    return end


@compiled
def _begins_with(points: Points, signs: tuple[int, ...]) -> bool:
    """Return whether a text begins with these signs; W counts as w."""
    if len(points) < len(signs):
        return False
    for place, sign in enumerate(signs):
        if points[place] != sign and not (sign == 0x77 and points[place] == 0x57):
            return False
    return True


@compiled
def _pass_joint(points: Points, at: int, length: int) -> int:
    """Return the start of the word that a joint attaches; `at` itself if no joint is there."""
    point, after = points[at], at + 1
    if point in (0x2D, 0x5F):  # -_
        while after < length and points[after] in (0x2D, 0x5F):
            after += 1
    elif point in (0x2E, 0x2F, 0x27, 0x2019, 0x40, 0x26, 0x2B, 0xB7, 0xB0):  # ./'’@&+·°
        pass
    elif point in (0x2C, 0x3A, 0xFF1A, 0xFF0E, 0x7E, 0xFF5E, 0xFF0F, 0xFF0D, 0x2014):
        # ,:：．~～／－—
        if after >= length or not (_is_digit(points[at - 1]) and _is_digit(points[after])):
            return at
    else:
        return at
    return after if after < length and _is_word_character(points[after]) else at


@compiled
def _find_url_end(points: Points, start: int, length: int) -> int:
    """Return the end of the visible ASCII from `start` on, without trailing punctuation."""
    end = start
    while end < length and 0x21 <= points[end] <= 0x7E:
        end += 1
    while end > start:
        last = points[end - 1]
        if _is_word_character(last) or last in (0x2F, 0x3D, 0x26, 0x23, 0x5F, 0x2D):  # /=&#_-
            break
        end -= 1
    return end
