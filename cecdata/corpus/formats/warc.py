"""Web archives: WARC with pages, and WET with their text (ISO 28500).

Each record is cut out by its own header, so that a broken record spoils no other; warcio decodes
its content. The row is the number of the record, the origin the host of the page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from cecdata.common.errors import MissingPackageError, how_to_install
from cecdata.corpus.columns import Columns
from cecdata.corpus.formats.base import Format
from cecdata.corpus.formats.web import page_text
from cecdata.corpus.rows import EXCERPT, Reject, Rows, gather
from cecdata.corpus.sources import Source, opened

_MAX_BYTES = 1 << 26  # of a record
_MAX_HEADER = 1 << 16
_VERSION = b"WARC/"
_PAGES = ("text/html", "application/xhtml+xml")


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the paragraphs of a web archive's pages and texts; other records have no rows."""
    del columns
    texts: list[bytes] = []
    origins: list[str] = []
    rows: list[int] = []
    rejects: list[Reject] = []

    def batch() -> Rows:
        text, origin = pa.array(texts, pa.binary()), pa.array(origins, pa.string())
        gathered = gather(source, text, origin, np.array(rows, dtype=np.int64), rejects)
        for pending in (texts, origins, rows, rejects):
            pending.clear()
        return gathered

    with opened(source) as stream:
        for number, record in enumerate(_records(stream), 1):
            if isinstance(record, str):
                rejects.append(Reject(number, source.origin, "", "invalid_warc", record))
                continue
            try:
                host, lines = _lines(record)
            except MissingPackageError:
                raise
            except Exception as error:  # noqa: BLE001 - a broken record may raise any exception
                shown = record[:EXCERPT].decode("utf-8", "backslashreplace")
                detail = f"{type(error).__name__}: {error}"
                rejects.append(Reject(number, source.origin, shown, "invalid_warc", detail))
                continue
            texts += lines
            origins += [host or source.origin] * len(lines)
            rows += [number] * len(lines)
            if len(rows) + len(rejects) >= min(batch_rows, 4096):
                yield batch()
        yield batch()


def _records(stream: IO[bytes]) -> Iterator[bytes | str]:
    """Yield the bytes of each record, or what is wrong with it, and go on to the next one."""
    line = stream.readline(_MAX_HEADER)
    while line:
        if not line.startswith(_VERSION):
            if line.strip():
                yield "bytes between records"
                line = _next_record(stream)
            else:
                line = stream.readline(_MAX_HEADER)
            continue
        header, length = [line], -1
        while (line := stream.readline(_MAX_HEADER)).strip() and len(header) < 1000:
            header.append(line)
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        if not 0 <= length <= _MAX_BYTES:
            yield f"its Content-Length is {length if length >= 0 else 'missing'}"
            line = _next_record(stream)
            continue
        body = stream.read(length)
        if len(body) < length:
            yield f"the file ends {length - len(body):,} bytes before the end of the record"
            return
        line = stream.readline(_MAX_HEADER)
        if line.strip():  # a wrong length: the record's end is not where it says
            yield "its Content-Length is wrong"
            line = line if line.startswith(_VERSION) else _next_record(stream)
            continue
        yield b"".join(header) + b"\r\n" + body + b"\r\n\r\n"


def _next_record(stream: IO[bytes]) -> bytes:
    """Return the first line of the next record, b"" at the end of the stream."""
    while line := stream.readline(_MAX_HEADER):
        if line.startswith(_VERSION):
            return line
    return b""


def _lines(record: bytes) -> tuple[str, list[bytes]]:
    """Return a record's host and the paragraphs of its text; no paragraphs for other records."""
    try:
        from warcio.archiveiterator import ArchiveIterator
    except ImportError as error:
        raise MissingPackageError(f"web archives need warcio: {how_to_install('web')}") from error

    for parsed in ArchiveIterator(io.BytesIO(record)):
        host = urlsplit(parsed.rec_headers.get_header("WARC-Target-URI") or "").hostname or ""
        if parsed.rec_type == "conversion":
            return host, [line for line in parsed.content_stream().read().split(b"\n") if line]
        if parsed.rec_type != "response" or parsed.http_headers is None:
            return host, []
        kind = (parsed.http_headers.get_header("Content-Type") or "").partition(";")[0].strip()
        if kind.lower() in _PAGES:
            return host, [line.encode() for line in page_text(parsed.content_stream().read())]
        if kind.lower() == "text/plain":
            return host, [line for line in parsed.content_stream().read().split(b"\n") if line]
    return "", []


FORMAT = Format(_read, (".warc", ".wet"), columns=False)
