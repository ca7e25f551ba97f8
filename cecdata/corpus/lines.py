"""Whole lines from a stream of bytes, in blocks, with constant memory."""

from __future__ import annotations

import codecs
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO

from cecdata.common.errors import InputError
from cecdata.common.text import advise_decompression
from cecdata.corpus.encodings import transcode
from cecdata.corpus.sources import MAX_BYTES, UTF8, Reject, Source, make_excerpt

BLOCK_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines, each ended by a line feed."""

    data: bytes
    first_line: int  # the number of the first line, from 1
    rejects: tuple[Reject, ...] = ()  # lines so long that they were never held whole


def split_blocks(stream: IO[bytes], source: Source, max_bytes: int = MAX_BYTES) -> Iterator[Block]:
    """Cut a stream at line ends (LF, CRLF, CR); the last line may lack one.

    A byte order mark is dropped. A line of more than `max_bytes` is rejected once, and never held
    in memory as a whole.
    """
    number, rest = 1, b""  # of the next line, and its bytes so far
    skipped, head = 0, b""  # of a line that is too long: its bytes so far, and how it begins
    for chunk in read_utf8(stream, source):
        data = rest + chunk
        rejects: tuple[Reject, ...] = ()
        if skipped:
            more, line_end, data = chunk.partition(b"\n")
            skipped += len(more)
            if not line_end:
                continue
            rejects = (_reject_long_line(source, number, head, skipped, max_bytes),)
            number, skipped = number + 1, 0
        end = data.rfind(b"\n") + 1
        lines, rest = data[:end], data[end:]
        if lines or rejects:
            yield Block(lines, number, rejects)
        number += lines.count(b"\n")
        if len(rest) > max_bytes:
            skipped, head, rest = len(rest), rest[:1024], b""
    if skipped:
        yield Block(b"", number, (_reject_long_line(source, number, head, skipped, max_bytes),))
    if rest:
        yield Block(rest + b"\n", number)


def _reject_long_line(source: Source, number: int, head: bytes, size: int, limit: int) -> Reject:
    detail = f"{size} bytes, at most {limit}"
    return Reject(number, source.origin, make_excerpt(head), "too_long", detail)


def read_utf8(stream: IO[bytes], source: Source) -> Iterator[bytes]:
    """Yield pieces of a stream in UTF-8, without its mark, whose line ends are all line feeds."""
    first, rest = True, b""
    for piece in filter(None, _transcode_stream(stream, source)):
        if first:
            if advice := advise_decompression(piece):  # a pipe, or a file that was compressed twice
                raise InputError(f"{source.label} {advice}")
            piece = piece.removeprefix(_BOM)  # noqa: PLW2901
        chunk = rest + piece
        first, rest = False, b""
        if b"\r" in chunk:
            if chunk.endswith(b"\r"):  # its line feed may open the next piece
                chunk, rest = chunk[:-1], b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if chunk:
            yield chunk
    if rest:
        yield b"\n"


def _transcode_stream(stream: IO[bytes], source: Source) -> Iterator[bytes]:
    """Yield the bytes of a stream, in UTF-8 if the source is in another encoding."""
    pieces = _read_pieces(stream)
    if source.encoding == UTF8:
        yield from pieces
        return
    chunk = next(pieces, b"")
    if _is_han_in_utf8(chunk):
        raise InputError(
            f"{source.label} is UTF-8, but --encoding is {source.encoding}: build the files of "
            "each encoding separately, or convert them with iconv"
        )
    try:
        yield from transcode(chain((chunk,), pieces), source.encoding)
    except UnicodeError as error:
        raise InputError(f"{source.label} is not {source.encoding}: {error}") from error


def _read_pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield about `BLOCK_BYTES` of a stream at a time; before an error, yield what was read."""
    parts: list[bytes] = []
    size = 0
    read = getattr(stream, "read1", stream.read)  # `read` loses what it has when it fails
    try:
        while piece := read(BLOCK_BYTES):
            parts.append(piece)
            size += len(piece)
            if size >= BLOCK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        yield b"".join(parts)
        raise
    yield b"".join(parts)


def _is_han_in_utf8(chunk: bytes) -> bool:
    """Return whether bytes are valid UTF-8, perhaps cut at the end, and hold Han characters."""
    try:
        text = codecs.getincrementaldecoder(UTF8)().decode(chunk)
    except UnicodeDecodeError:
        return False
    return any("\u4e00" <= character <= "\u9fff" for character in text)
