"""The formats of documents by the suffix of a file's name; all other files are lines of text."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import InputError
from cecdata.common.text import unreadable

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
    are no text, reads their bytes.
    """

    suffixes: tuple[str, ...]
    module: str
    function: str = "find_passages"
    is_binary: bool = False


LINES = Format((), "lines")
FORMATS = (
    Format((".md", ".markdown", ".mdx"), "markdown"),
    Format((".html", ".htm", ".xhtml", ".xml", ".svg"), "tags"),
    Format((".tex", ".ltx"), "tex"),
)
_BY_SUFFIX = {suffix: form for form in FORMATS for suffix in form.suffixes}


def find_format(name: str) -> Format | None:
    """Return the format of a file with this name; None for lines of text."""
    return _BY_SUFFIX.get(Path(name).suffix.lower())


def read_document(name: str, data: bytes, encoding: str | None = None) -> Document:
    """Return the document in the bytes of a file; raise InputError where they are none.

    encoding: of a text; None: UTF-8, or the one that its bytes show.
    """
    from cectrain.documents.document import TextDocument

    form = find_format(name) or LINES
    function: Any = getattr(import_module(f"cectrain.documents.{form.module}"), form.function)
    if form.is_binary:
        document: Document = function(data)
        return document
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    body = data[len(mark) :]
    encoding = _MARKS.get(mark) or encoding or find_encoding(body)
    try:
        source = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{unreadable(error)}, or name its encoding with --encoding") from error
    if source.encode(encoding) != body:
        raise InputError(f"would not stay the same in {encoding}: convert it to UTF-8")
    return TextDocument(source, encoding, mark, function)


def find_encoding(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes; a character may be cut."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        from cecdata.corpus.encodings import detected

        return detected(head)
    return "utf-8"
