"""The encoding of a text file, from its first bytes."""

from __future__ import annotations

import codecs
import re

from cecdata.common.errors import InputError
from cecdata.corpus.sources import UTF8, Source, opened

AUTO = "auto"
_HEAD = 1 << 16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HAN = re.compile("[\u4e00-\u9fa5]").match
_KNOWN = ("gb18030", "big5", "utf_16_le", "utf_16_be")


def encoding_of(source: Source) -> str:
    """Return the encoding of a file: UTF-8, GB 18030, Big5 or UTF-16.

    A file that fits no encoding is read as UTF-8, so that its rows are rejected.
    """
    try:
        with opened(source) as stream:
            return detected(getattr(stream, "read1", stream.read)(_HEAD))
    except (InputError, OSError):  # the reader of the file reports the problem
        return UTF8


def detected(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes.

    >>> detected("他的病情已经好转，明天就能出院。".encode("gb18030"))
    'gb18030'
    """
    if head.startswith(_UTF16):
        return "utf-16"
    if not head or _mostly_utf8(head):
        return UTF8
    import charset_normalizer

    best = charset_normalizer.from_bytes(head, cp_isolation=list(_KNOWN), threshold=0.2).best()
    if best is None or not _chinese(str(best)):
        return UTF8
    return codecs.lookup(best.encoding).name


def _chinese(text: str) -> bool:
    """Return whether at least 60 % of the characters beyond ASCII are Han; random bytes fail."""
    others = [character for character in text if not character.isascii()]
    return sum(map(bool, map(_HAN, others))) >= 0.6 * len(others)


def _mostly_utf8(head: bytes) -> bool:
    """Return whether at least half of the lines that are not ASCII are UTF-8."""
    sound = broken = 0
    for line in head.split(b"\n"):
        if line.isascii():
            continue
        try:
            codecs.getincrementaldecoder(UTF8)().decode(line)
            sound += 1
        except UnicodeDecodeError:
            broken += 1
    return sound >= broken
