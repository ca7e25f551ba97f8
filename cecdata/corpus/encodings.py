"""The encoding of a text file, and its text where some bytes are damaged.

Many byte strings are valid in several East Asian encodings. A reading is judged by its characters:
each has the logarithm of its frequency in Chinese text over that in text decoded wrongly, in which
the characters of GB 2312 are about equally frequent. The reading with the highest sum is taken.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError
from cecdata.corpus.sources import UTF8, Source, opened

AUTO = "auto"
_ENOUGH, _MOST = 1 << 14, 1 << 24  # bytes beyond ASCII that decide; bytes that are searched
_PIECE = 1 << 16
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Of a family, which has most characters in common, the one with the highest sum is taken.
_FAMILIES = (("gb18030",), ("big5", "cp950", "big5hkscs"), ("utf-16-le",), ("utf-16-be",))
_SEVEN_BITS = ((rb"~\{", ("hz",)), (rb"\+[A-Za-z0-9+/]{4}", ("utf-7",)))
_READ_AS = dict.fromkeys(("gbk", "gb2312", "cp936"), "gb18030") | {"utf-8-sig": UTF8}
# Python's codec still has private-use characters where the standard and browsers have others: an
# ideographic space for A3A0, the vertical marks and the ideographs of GB 18030-2022, and ḿ.
_GB_ODD = {0xE5E5: 0x3000, 0xE7C7: 0x1E3F} | dict(
    zip(
        (*range(0xE78D, 0xE797), 0xE81E, 0xE826, 0xE82B, 0xE82C, 0xE832, 0xE843, 0xE854, 0xE864),
        (0xFE10, 0xFE12, 0xFE11, *range(0xFE13, 0xFE1A), *range(0x9FB4, 0x9FBC)),
        strict=True,
    )
)
_IS_GB_ODD = re.compile(f"[{''.join(map(chr, _GB_ODD))}]")

# Weights, in nats. Text that was decoded wrongly has some -2 a character, Chinese text above +1.
_MIXED = 6763  # characters of GB 2312
_FLOOR, _CEILING = -4.0, 5.0
_DAMAGED = -6.0
_LEAST, _LEAST_EACH = 4.0, 0.2  # nats that a file needs, and those for each of its characters
# Latin text with accents has single characters beside letters of ASCII.
_LONE = re.compile(r"(?<=[A-Za-z])[^\0-\x7f](?![^\0-\x7f])|(?<![^\0-\x7f])[^\0-\x7f](?=[A-Za-z])")
_LONE_COST = 3.0
# Neighbouring languages: encoding, script, nats of each of its characters.
_RIVALS = (
    ("cp949", "\uac00-\ud7a3", 1.0),
    ("euc_jp", "\u3041-\u30fc", 3.0),
    ("cp932", "\u3041-\u30fc", 3.0),
    ("koi8-r", "\u0430-\u044f", 0.8),
)

Weights = npt.NDArray[np.float32]


def encoding_of(source: Source) -> str:
    """Return the encoding of a file: UTF-8, GB 18030, Big5, UTF-16, HZ or UTF-7.

    A file that fits no encoding is read as UTF-8, so that its rows are rejected.
    """
    try:
        with opened(source) as stream:
            return detected(_sample(stream))
    except (InputError, OSError):  # the reader of the file reports the problem
        return UTF8


def _sample(stream: object) -> bytes:
    """Return the first bytes of a stream, up to some thousand beyond ASCII."""
    read = getattr(stream, "read1", None) or stream.read  # type: ignore[attr-defined]
    parts: list[bytes] = []
    size = beyond = 0
    while size < _MOST and beyond < _ENOUGH and (piece := read(_PIECE)):
        parts.append(piece)
        size += len(piece)
        beyond += _beyond(piece)
        if b"\0" in piece:  # not a text of 8 bits
            break
    return b"".join(parts)


def _beyond(data: bytes) -> int:
    """Return the number of bytes that are not ASCII."""
    return int((np.frombuffer(data, np.uint8) >= 0x80).sum())


def detected(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes; a character may be cut.

    >>> detected("他的病情已经好转，明天就能出院。".encode("gb18030"))
    'gb18030'
    """
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    if _beyond(head) < len(head) / 100:
        families = [family for pattern, family in _SEVEN_BITS if re.search(pattern, head)]
        if best := _best(head, families):
            return best
    if _mostly_utf8(head):
        return UTF8
    return _best(head, _FAMILIES) or UTF8


def _best(head: bytes, families: Sequence[Sequence[str]]) -> str:
    """Return the encoding in which the bytes are most likely Chinese, or ""."""
    if not families:
        return ""
    scores = {name: _score(_decoded(head, name)) for family in families for name in family}
    first, *others = sorted(
        (max(family, key=scores.__getitem__) for family in families), key=lambda name: -scores[name]
    )
    rivals = (_rival_score(head, *rival) for rival in _RIVALS)
    second = max([0.0, *rivals, *(scores[name] for name in others)])
    return first if scores[first] - second > _LEAST else ""


def _score(text: str) -> float:
    """Return how much more likely a text is Chinese than decoded wrongly, in nats."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = codes[codes >= 0x80]
    sums = float(weights()[np.minimum(codes, 0xFFFF)].sum())
    return sums - _LEAST_EACH * len(codes) - _LONE_COST * len(_LONE.findall(text))


def _rival_score(head: bytes, encoding: str, script: str, nats: float) -> float:
    """Return the same for a text in another language, which has its own script."""
    text = _decoded(head, encoding)
    own, damaged, beyond = (
        len(re.findall(f"[{signs}]", text)) for signs in (script, "\udc00-\udcff", "^\0-\x7f")
    )
    return nats * own - 2.0 * (beyond - own) + _DAMAGED * damaged


def _decoded(head: bytes, name: str) -> str:
    return b"".join(transcoded((head,), name)).decode("utf-8", "surrogatepass")


def _mostly_utf8(head: bytes) -> bool:
    """Return whether at least two thirds of the bytes beyond ASCII are characters of UTF-8.

    Characters of two bytes are also pairs of bytes of GB 18030: one of three bytes must occur, or
    no other encoding may give Chinese.
    """
    if not _beyond(head):
        return True
    text = codecs.getincrementaldecoder(UTF8)("surrogateescape").decode(head)
    beyond = re.sub(r"[\0-\x7f]+", "", text)
    bad = sum("\udc80" <= sign <= "\udcff" for sign in beyond)
    good = len(beyond.encode("utf-8", "ignore"))
    if good < 2 * bad:
        return False
    return any(sign >= "\u0800" and not "\ud800" <= sign <= "\udfff" for sign in beyond) or not (
        _best(head, _FAMILIES)
    )


def codec(encoding: str) -> str:
    """Return Python's name of an encoding, or of one that reads the same files and more."""
    "".encode(encoding)
    name = codecs.lookup(encoding).name
    return _READ_AS.get(name, name)


DAMAGE = "cecdata.damage"  # the handler of errors that makes each bad byte a lone surrogate


def _damage(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


codecs.register_error(DAMAGE, _damage)


def transcoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the pieces of a text in UTF-8; a damaged byte becomes a lone surrogate.

    A lone surrogate is invalid in UTF-8, so that the row that has it is rejected.
    """
    if encoding.startswith("utf-16"):
        encoding, pieces = _aligned(encoding, pieces)
    decoder = codecs.getincrementaldecoder(encoding)(DAMAGE)
    for piece in pieces:
        yield corrected(decoder.decode(piece), encoding).encode("utf-8", "surrogatepass")
    yield corrected(decoder.decode(b"", final=True), encoding).encode("utf-8", "surrogatepass")


def _aligned(encoding: str, pieces: Iterable[bytes]) -> tuple[str, Iterator[bytes]]:
    """Return the byte order of UTF-16, and the text with damage in each line of odd length.

    Otherwise a missing byte would shift all lines after it.
    """
    rest = iter(pieces)
    first = next(rest, b"")
    big = encoding.endswith("be") or first.startswith(codecs.BOM_UTF16_BE)
    order = "utf-16-be" if big else "utf-16-le"
    end, damage = "\n".encode(order), "\ud800".encode(order, "surrogatepass")

    def whole(line: bytes) -> bytes:
        return line if len(line) % 2 == 0 else line[:-1] + damage

    def lines() -> Iterator[bytes]:
        held = b""
        for piece in chain((first,), rest):
            *parts, held = (held + piece).split(end)
            yield b"".join(whole(part) + end for part in parts)
            if len(held) > _MOST:  # no lines: it is rejected later
                yield held[:_MOST]
                held = held[_MOST:]
        yield whole(held)

    return order, lines()


def corrected(text: str, encoding: str) -> str:
    """Return a decoded text with the characters that browsers read where Python's are private."""
    return text.translate(_GB_ODD) if encoding == "gb18030" and _IS_GB_ODD.search(text) else text


@functools.cache
def weights() -> Weights:
    """Return the weight of each character of the BMP; U+FFFF stands for all above it."""
    from cecdata.hanzi.characters import frequency, standard_characters, traditional_forms

    table = np.full(0x10000, -2.0, np.float32)
    table[:0x80] = 0.0
    table[0x2000:0x2070] = table[0x3000:0x3020] = table[0xFF00:0xFF5F] = 0.0  # signs, full width
    table[[ord(sign) for sign in "\u3000，。、；：？！“”《》（）—…"]] = 1.5
    for first, stop in ((0x3400, 0xA000), (0xD800, 0xE000), (0xF900, 0xFB00), (0xAC00, 0xD7B0)):
        table[first:stop] = _FLOOR
    table[0xDC00:0xDD00] = _DAMAGED
    for character in standard_characters():
        weight = np.log(max(frequency(character), 1e-3) * 1e-6 * _MIXED)
        for form in (character, *traditional_forms(character)):
            if len(form) == 1 and ord(form) < len(table):
                found = np.clip(weight, _FLOOR, _CEILING)
                table[ord(form)] = max(table[ord(form)], found)
    return table
