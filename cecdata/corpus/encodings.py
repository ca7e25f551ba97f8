"""The encoding of a text file, and its text where some bytes are damaged.

Many byte strings are valid in several encodings of Chinese. A reading is judged by its characters:
each has the logarithm of its frequency in Chinese text over that in text decoded wrongly, in which
the characters of GB 2312 are about equally frequent. The reading with the highest sum is taken.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError
from cecdata.corpus.sources import UTF8, Source, open_source

AUTO = "auto"
_ENOUGH, _MOST = 1 << 14, 1 << 24  # bytes beyond ASCII that decide; bytes that are searched
_PIECE = 1 << 16
# Of a family, which has most characters in common, the one with the highest sum is taken.
_FAMILIES = (("gb18030",), ("big5", "cp950", "big5hkscs"), ("utf-16-le",), ("utf-16-be",))
_READ_AS = dict.fromkeys(("gbk", "gb2312", "cp936"), "gb18030") | {"utf-8-sig": UTF8}

# Weights, in nats. Text that was decoded wrongly has some -2 a character, Chinese text above +1.
_MIXED = 6763  # characters of GB 2312
_FLOOR, _CEILING = -4.0, 5.0
_DAMAGED = -6.0
_LEAST, _LEAST_EACH = 4.0, 0.2  # nats that a file needs, and those for each of its characters

Weights = npt.NDArray[np.float32]


def choose_encoding(source: Source) -> str:
    """Return the encoding of a file: UTF-8, GB 18030, Big5 or UTF-16.

    A file that fits no encoding is read as UTF-8, so that its rows are rejected.
    """
    try:
        with open_source(source) as stream:
            return detect_encoding(_read_sample(stream))
    except (InputError, OSError):  # the reader of the file reports the problem
        return UTF8


def _read_sample(stream: object) -> bytes:
    """Return the first bytes of a stream, up to some thousand beyond ASCII."""
    read = getattr(stream, "read1", None) or stream.read  # type: ignore[attr-defined]
    parts: list[bytes] = []
    size = beyond = 0
    while size < _MOST and beyond < _ENOUGH and (piece := read(_PIECE)):
        parts.append(piece)
        size += len(piece)
        beyond += _count_beyond(piece)
        if b"\0" in piece:  # not a text of 8 bits
            break
    return b"".join(parts)


def _count_beyond(data: bytes) -> int:
    return int((np.frombuffer(data, np.uint8) >= 0x80).sum())


def detect_encoding(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes; a character may be cut."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return UTF8 if _is_mostly_utf8(head) else _find_likeliest(head) or UTF8


def _find_likeliest(head: bytes) -> str:
    """Return the encoding in which the bytes are most likely Chinese, or ""."""
    scores = {name: _score_reading(head, name) for family in _FAMILIES for name in family}
    best_of_families = [max(family, key=scores.__getitem__) for family in _FAMILIES]
    best, second, *_ = sorted(best_of_families, key=scores.__getitem__, reverse=True)
    return best if scores[best] - max(0.0, scores[second]) > _LEAST else ""


def _score_reading(head: bytes, encoding: str) -> float:
    """Return how much more likely Chinese than wrongly decoded is the text, in nats."""
    text = b"".join(transcode((head,), encoding)).decode("utf-8", "surrogatepass")
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = codes[codes >= 0x80]
    return float(weigh_characters()[np.minimum(codes, 0xFFFF)].sum()) - _LEAST_EACH * len(codes)


def _is_mostly_utf8(head: bytes) -> bool:
    """Return whether at least two thirds of the bytes beyond ASCII are characters of UTF-8.

    Characters of two bytes are also pairs of bytes of GB 18030: one of three bytes must occur, or
    no other encoding may give Chinese.
    """
    if not _count_beyond(head):
        return True
    text = codecs.getincrementaldecoder(UTF8)("surrogateescape").decode(head)
    beyond_ascii = re.sub(r"[\0-\x7f]+", "", text)
    good = len(beyond_ascii.encode("utf-8", "ignore"))
    bad = sum("\ud800" <= sign <= "\udfff" for sign in beyond_ascii)  # one for each bad byte
    if good < 2 * bad:
        return False
    takes_three_bytes = re.search("[\u0800-\ud7ff\ue000-\U0010ffff]", beyond_ascii)
    return bool(takes_three_bytes) or not _find_likeliest(head)


def find_codec(encoding: str) -> str:
    """Return Python's name of an encoding, or of one that reads the same files and more."""
    "".encode(encoding)  # refuses what Python knows as a codec, and is none of text
    name = codecs.lookup(encoding).name
    return _READ_AS.get(name, name)


_DAMAGE = "cecdata.damage"  # the handler of errors that makes each bad byte a lone surrogate


def _mark_damage(error: UnicodeError) -> tuple[str, int]:
    """Return lone surrogates for the bytes that do not decode, and where they end."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


codecs.register_error(_DAMAGE, _mark_damage)


def transcode(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the pieces of a text in UTF-8; a damaged byte becomes a lone surrogate.

    A lone surrogate is invalid in UTF-8, so that the row that has it is rejected.
    """
    decoder = codecs.getincrementaldecoder(encoding)(_DAMAGE)
    for piece in chain(pieces, (b"",)):
        text = decoder.decode(piece, final=not piece)
        if encoding == "gb18030":  # the ideographic space of many pages is private to Python
            text = text.replace("\ue5e5", "\u3000")
        yield text.encode("utf-8", "surrogatepass")


@functools.cache
def weigh_characters() -> Weights:
    """Return the weight of each character of the BMP; U+FFFF stands for all above it."""
    from cecdata.hanzi.characters import find_frequency, standard_characters, traditional_forms

    table = np.full(0x10000, -2.0, np.float32)  # of characters of other scripts
    table[:0x80] = 0.0
    table[0x2000:0x2070] = table[0x3000:0x3020] = table[0xFF00:0xFF5F] = 0.0  # signs, full width
    table[[ord(sign) for sign in "\u3000，。、；：？！“”《》（）—…"]] = 1.5
    # Han, surrogates, compatible Han, Hangul
    for first, stop in ((0x3400, 0xA000), (0xD800, 0xE000), (0xF900, 0xFB00), (0xAC00, 0xD7B0)):
        table[first:stop] = _FLOOR
    table[0xDC00:0xDD00] = _DAMAGED  # lone surrogates for bytes that do not decode
    for character in standard_characters():
        frequency = max(find_frequency(character), 1e-3) * 1e-6  # from a million characters
        weight = np.log(frequency * _MIXED)  # in mixed text it is 1 / _MIXED
        for form in (character, *traditional_forms(character)):
            if len(form) == 1 and ord(form) < len(table):
                table[ord(form)] = max(table[ord(form)], np.clip(weight, _FLOOR, _CEILING))
    return table
