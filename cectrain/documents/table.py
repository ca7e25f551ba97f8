"""The formats of documents by the suffix of a file's name; all other files are lines of text."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import InputError, UsageError
from cecdata.common.text import explain_unreadable

if TYPE_CHECKING:
    from cectrain.documents.document import Document

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of document.

    module: one of this room. function: what in it yields the passages of a text or, where files
    are no text, reads their bytes. refusal: why no such file is read.
    """

    suffixes: tuple[str, ...]
    module: str = ""
    function: str = "find_passages"
    is_binary: bool = False
    refusal: str = ""


_UNREAD = "is a document of a kind that is not read: save it as .docx or .txt"
LINES = Format((), "document", "find_lines")
WORD = Format((".docx",), "word", "WordDocument", is_binary=True)
FORMATS = (
    Format((".md", ".markdown", ".mdx"), "markdown"),
    Format((".html", ".htm", ".xhtml", ".xml", ".svg"), "tags"),
    Format((".tex", ".ltx"), "tex"),
    WORD,
    Format((".srt", ".vtt"), "subtitles"),
    Format((".ass", ".ssa"), "subtitles", "find_dialogues"),
    Format((".json", ".jsonl", ".ndjson"), "columns", "find_strings"),
    Format((".doc", ".docm", ".rtf", ".wps", ".odt", ".fodt", ".pages", ".pdf"), refusal=_UNREAD),
    Format((".epub", ".ppt", ".pptx", ".odp", ".eml", ".mht", ".mhtml"), refusal=_UNREAD),
    Format((".xls", ".xlsx", ".ods"), refusal="is not read: save it as .csv"),
    Format((".parquet",), refusal="is a table: name its column"),
)
#: formats of tables, of which one column is read
TABLES = (
    Format((".csv", ".tsv"), "columns", "find_cells"),
    Format((".jsonl", ".ndjson"), "columns", "find_values"),
    Format((".parquet",), "columns", "ParquetDocument", is_binary=True),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    encoding: of texts; None: UTF-8, or the one that their bytes show. column: of tables. date: of
    tracked changes, in the form of ISO 8601; None: now. comments: whether they say why. suffix: as
    if every name ended so.
    """

    encoding: str | None = None
    column: str | None = None
    date: str | None = None
    comments: bool = False
    suffix: str | None = None

    def __post_init__(self) -> None:
        """Raise UsageError for an encoding that Python lacks."""
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError as error:
            wrong = f"{self.encoding} is no encoding: name one such as gb18030, big5, utf-16"
            raise UsageError(wrong) from error


def list_suffixes() -> list[str]:
    """Return the suffixes of the documents and tables that are read."""
    read = (form for form in (*FORMATS, *TABLES) if not form.refusal)
    return [*dict.fromkeys(suffix for form in read for suffix in form.suffixes)]


def find_format(name: str) -> Format | None:
    """Return the format of a file with this name; None for lines of text."""
    return _find_by_suffix(name, FORMATS)


def find_suffix(name: str) -> str:
    """Return the suffix by which a name tells a format or a table; '' where it tells none."""
    return Path(name).suffix.lower() if _find_by_suffix(name, (*FORMATS, *TABLES)) else ""


def _find_by_suffix(name: str, formats: Sequence[Format]) -> Format | None:
    suffix = Path(name).suffix.lower()
    return next((form for form in formats if suffix in form.suffixes), None)


def read_document(name: str, data: bytes, reading: Reading) -> Document:
    """Return the document in the bytes of a file; raise InputError where they are none."""
    from cectrain.documents.document import TextDocument

    form = _choose_format(name + (reading.suffix or ""), reading.column)
    function: Any = getattr(import_module(f"cectrain.documents.{form.module}"), form.function)
    if reading.column is not None:
        function = partial(function, column=reading.column)
    if form is WORD:
        function = partial(function, date=reading.date, comments=reading.comments)
    if form.is_binary:
        document: Document = function(data)
        return document
    return TextDocument(*_decode_text(data, reading.encoding), function)


def _choose_format(name: str, column: str | None) -> Format:
    """Return the format of a file with this name, of which a column may be wanted."""
    form = find_format(name) or LINES
    if column is not None:
        if (table := _find_by_suffix(name, TABLES)) is None:
            suffixes = ", ".join(suffix for form in TABLES for suffix in form.suffixes)
            raise InputError(f"has no columns: --column is for {suffixes}; of a pipe, add --suffix")
        form = table
    if form.refusal:
        raise InputError(form.refusal)
    return form


def _decode_text(data: bytes, named: str | None) -> tuple[str, str, bytes]:
    """Return the text in the bytes of a file, its encoding, and its byte order mark.

    named: the encoding where there is no mark; None: the one that the bytes show.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    body = data[len(mark) :]
    encoding = _MARKS.get(mark) or named or find_encoding(body)
    try:
        source = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{explain_unreadable(error)}, or name its encoding") from error
    if source.encode(encoding) != body:
        raise InputError(f"would not stay the same in {encoding}: convert it to UTF-8")
    return source, encoding, mark


def find_encoding(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes; a character may be cut.

    Raises InputError where the letters of ASCII are those of RTF or PDF.
    """
    if head.startswith((b"{\\rtf", b"%PDF-")):
        raise InputError(_UNREAD)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        from cecdata.corpus.encodings import detect_encoding

        return detect_encoding(head)
    return "utf-8"
