"""Cases out of seeds: case n of a reader is a pure function of (reader, run seed, n).

Half of the changes know the form (a JSON value, a line, a cell, a little-endian word), half know
bytes alone. Nothing here looks at what the reader does.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST = 1 << 16  # bytes of a case
NUMBERS = (
    b"-1", b"0", b"1", b"2147483648", b"-9223372036854775809", b"18446744073709551616", b"1e999",
    b"NaN", b"Infinity", b"-Infinity", b"0.5", b"1e-400", b"9" * 5000, b"\xc2\xb2", b"\xd9\xa3",
)  # fmt: skip
TOKENS = (
    b"", b"\0", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n", b"\t",
    b"\t\t", b"\x1a", b"\x7f", b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\\ud800", b"\\udc00", b"\\u0000", b"\xe2\x80\xa8", b"\xc2\x85", b"\xef\xbf\xbd",
    "𠀀".encode(), "e\u0301".encode(), "👍🏽".encode(), "\ufeff".encode(), "　".encode(), b'"',
    b"'",
    b'"""', b"\\", b",", b";", b":", b"=", b"{", b"}", b"[", b"]", b"[[", b"{}", b"[]", b"null",
    b"true", b"|||", b"-NONE-", b"S ", b"A ", b"T0 ", b"../", b"/etc/passwd", b"C:\\x", b"..",
    b"[" * 3000, b'{"a":' * 3000, b"[" * 200, b"(" * 200, b"<think>", b"</think>", b"```\n", b"# ",
    b"data/", b"\xe5\xb7\xb2", b"a" * 5000, b"nan", b"inf", b"1979-05-27T07:32:00Z", b".", b"%s",
    b"<script>", b"&#", b"\x1b[31m", b"0x", b"_", b"+",
)  # fmt: skip
_DIGITS = re.compile(rb"-?\d+(?:\.\d+)?")
_WORDS = (0, 1, -1, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1)
ODD: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 0.5, 2**31, 2**63, 2**64, -(2**63) - 1, 1e308, float("nan"),
    float("inf"), "", "x", "\ud800", "\0", "../x", "/x", "已", "a" * 300, [], {}, [[]], [None],
    {"": None}, ["x", 1], "9" * 5000, "nan", "²",
)  # fmt: skip

Change = Callable[[random.Random, bytearray, Sequence[bytes]], bytearray]


@dataclass(frozen=True, slots=True)
class Mutator:
    """Makes cases: `form` is "json", "lines", "text" or "binary"; `seal` puts sums right again.

    `make` gives the seeds; it is called when the first case is drawn, and once.
    """

    make: Callable[[], tuple[bytes, ...]]
    form: str = "text"
    seal: Callable[[bytes], bytes] | None = None

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """What the cases are made from."""
        return _seeds(self.make)

    def case(self, salt: str, number: int) -> bytes:
        """The bytes of one case: a seed after some changes."""
        draw = random.Random(f"{salt}:{number}")
        data = bytearray(draw.choice(self.seeds))
        for _ in range(1 + min(int(draw.expovariate(0.7)), 7)):
            table = _OF_FORM[self.form] if draw.random() < 0.5 else _PLAIN
            data = draw.choice(table)(draw, data, self.seeds)
            del data[LONGEST:]
        if self.seal is not None and draw.random() < 0.7:
            return self.seal(bytes(data))
        return bytes(data)


@functools.cache
def _seeds(make: Callable[[], tuple[bytes, ...]]) -> tuple[bytes, ...]:
    return make()


def _place(draw: random.Random, data: bytearray) -> int:
    return draw.randrange(len(data) + 1)


def _span(draw: random.Random, data: bytearray) -> tuple[int, int]:
    start = _place(draw, data)
    size = min(int(draw.expovariate(0.08)) + 1, len(data) - start)
    return start, start + max(size, 0)


def flip(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    if data:
        at = draw.randrange(8 * len(data))
        data[at >> 3] ^= 1 << (at & 7)
    return data


def put(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    if data:
        data[draw.randrange(len(data))] = draw.choice((0, 0x0A, 0x22, 0x7F, 0x80, 0xFF, 0x30))
    return data


def remove(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    start, end = _span(draw, data)
    del data[start:end]
    return data


def double(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    start, end = _span(draw, data)
    at = _place(draw, data)
    data[at:at] = data[start:end] * draw.choice((1, 1, 2, 3, 50))
    return data


def insert(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at = _place(draw, data)
    data[at:at] = draw.choice(TOKENS) if draw.random() < 0.8 else draw.randbytes(draw.randrange(9))
    return data


def splice(draw: random.Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    other = bytearray(draw.choice(others))
    start, end = _span(draw, other)
    first, last = _span(draw, data)
    if draw.random() < 0.2:
        return data[:first] + other[start:]
    data[first:last] = other[start:end]
    return data


def cut(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    return data[: _place(draw, data)] if draw.random() < 0.7 else data[_place(draw, data) :]


def number(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    places = [match.span() for match in _DIGITS.finditer(data)]
    if places:
        start, end = draw.choice(places)
        data[start:end] = draw.choice(NUMBERS)
    return data


def word(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    """A little-endian integer somewhere becomes a remarkable one, or moves by a little."""
    form = draw.choice(["<b", "<h", "<i", "<q"])
    size = struct.calcsize(form)
    if len(data) < size:
        return data
    at = draw.randrange(len(data) - size + 1)
    bits = 8 * size
    old = struct.unpack_from(form, data, at)[0]
    new = draw.choice(_WORDS) if draw.random() < 0.6 else old + draw.randint(-9, 9)
    new = (new + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    struct.pack_into(form, data, at, new)
    return data


def line(draw: random.Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    """A whole line goes, comes twice, moves, or comes from another seed."""
    lines = data.split(b"\n")
    at, to = draw.randrange(len(lines)), draw.randrange(len(lines))
    act = draw.randrange(5)
    if act == 0:
        del lines[at]
    elif act == 1:
        lines.insert(to, lines[at])
    elif act == 2:
        lines[at], lines[to] = lines[to], lines[at]
    elif act == 3:
        lines.insert(to, bytearray(draw.choice(bytes(draw.choice(others)).split(b"\n"))))
    else:
        lines[at] = bytearray(draw.choice(TOKENS))
    return bytearray(b"\n").join(lines)


def cell(draw: random.Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    """A cell of a line goes, comes twice, or becomes something odd."""
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    mark = draw.choice((b"\t", b"\t", b",", b" ", b"|||", b"="))
    cells = lines[at].split(mark)
    place = draw.randrange(len(cells))
    act = draw.randrange(4)
    if act == 0:
        del cells[place]
    elif act == 1:
        cells.insert(place, cells[place])
    elif act == 2:
        cells[place] = bytearray(draw.choice(TOKENS + NUMBERS))
    else:
        draw.shuffle(cells)
    lines[at] = bytearray(mark).join(cells)
    return bytearray(b"\n").join(lines)


def value(draw: random.Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    """A value somewhere in the JSON (or in one line of it) becomes another, moves or goes."""
    lines = data.split(b"\n")
    whole = _parsed(data)
    if whole is not None:
        return bytearray(_dumped(draw, _changed(draw, whole[0])))
    at = draw.randrange(len(lines))
    part = _parsed(lines[at])
    if part is None:
        return insert(draw, data, others)
    lines[at] = bytearray(_dumped(draw, _changed(draw, part[0]), flat=True))
    return bytearray(b"\n").join(lines)


def _parsed(data: bytearray) -> tuple[object] | None:
    try:
        return (json.loads(bytes(data)),)
    except (ValueError, RecursionError):
        return None


def _dumped(draw: random.Random, found: object, *, flat: bool = False) -> bytes:
    # Not `indent`, which is written by an encoder in Python: half the time of some readers' cases.
    between = None if flat else (",\n", ": ")
    text = json.dumps(found, ensure_ascii=draw.random() < 0.5, separators=between)
    return text.encode("utf-8", "surrogatepass")


def _changed(draw: random.Random, found: object) -> object:
    """The same value with one place of it changed."""
    inside = isinstance(found, (dict, list)) and bool(found) and draw.random() < 0.85
    if not inside:
        return draw.choice(ODD)
    if isinstance(found, list):
        made = list(found)
        at = draw.randrange(len(made))
        act = draw.randrange(4)
        if act == 0:
            del made[at]
        elif act == 1:
            made.insert(at, made[at])
        else:
            made[at] = _changed(draw, made[at])
        return made
    assert isinstance(found, dict)
    entries = dict(found)
    key = draw.choice(list(entries))
    act = draw.randrange(6)
    if act == 0:
        del entries[key]
    elif act == 1:
        entries[str(draw.choice(ODD))] = entries[key]
    elif act == 2:
        entries[key] = entries[draw.choice(list(entries))]
    else:
        entries[key] = _changed(draw, entries[key])
    return entries


_PLAIN: tuple[Change, ...] = (flip, flip, put, remove, double, insert, insert, splice, cut, number)
_OF_FORM: dict[str, tuple[Change, ...]] = {
    "json": (value, value, value, number, line),
    "lines": (line, cell, cell, number),
    "text": (insert, line, splice, number),
    "binary": (word, word, flip, splice),
}


def reseal(data: bytes) -> bytes:
    """Return the object with a seal that holds; what is no object stays as it is."""
    zeros = "0" * 64
    try:
        document = json.loads(data)
        assert isinstance(document, dict)
        document.pop("seal", None)
        body = json.dumps({**document, "seal": zeros}, ensure_ascii=False) + "\n"
    except (ValueError, AssertionError, RecursionError):
        return data
    whole = body.encode("utf-8", "surrogatepass")
    head, _, tail = whole.rpartition(zeros.encode())
    return head + hashlib.sha256(whole).hexdigest().encode() + tail


def reseal_lines(data: bytes) -> bytes:
    """Return the same line by line."""
    return b"\n".join(reseal(line).removesuffix(b"\n") for line in data.split(b"\n"))
