"""Spans that no operator may change: URLs, e-mail addresses, Latin words, numbers, names.

A word W is letters and digits of either width. A protected span is

    W, then any of [-_]+ W, [./'’@&+·°] W and, from digit to digit, [,:：．~～／－—] W
    before a digit one of $￥¥€£+-−±＋－, after it one of %％‰℃℉°
    after a letter +, ++ or #
    after :// or a leading www. all of !-~, up to the last [0-9A-Za-z/=&#_-]

so 3.14, 12:30, 2024-01-02, 50%, -5℃, iPhone15, C++, Wi-Fi, a.b@c.cn and https://a.cn/?q=1 are one
each. Names are protected wherever they occur, within words too. Numbers in Han characters (三十)
are text like any other. Typed placeholders such as <ADDR> are known to the kernel itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError
from cecdata.corpus.normalise import normalise_text
from cecdata.corpus.protect_kernel import FIRST, FURTHER, STATE_BITS, insert, mark

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.uint64]

_LONGEST_NAME = 256


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
        for name in names:
            starts[ord(name[0]) >> 6] |= np.uint64(1) << np.uint64(ord(name[0]) & 63)
            state = 0
            for sign in name:
                state = children.setdefault((state, ord(sign)), len(children) + 1)
                ends.setdefault(state, 0)
            ends[state] = 1
        packed = [state << STATE_BITS | point for state, point in children]
        size = 2 ** max(2, (2 * len(packed)).bit_length()) if packed else 0
        keys, following = np.full(size, 2**64 - 1, np.uint64), np.zeros(size, np.int32)
        insert(keys, following, np.array(packed, np.uint64), np.array([*children.values()], "i4"))
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
        count, some = mark(
            data, offsets, points, self.spans, names.keys, names.next, names.ends, names.starts,
            held,
        )  # fmt: skip
        return held[: count if some else 0]


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
