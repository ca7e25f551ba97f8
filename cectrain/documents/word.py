"""Word files (.docx): each correction is a tracked change, which its reader accepts or rejects.

Fields, what others inserted or deleted, and all parts of the file without prose stay as they are.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timezone
from itertools import count
from typing import Any, NamedTuple

from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cectrain.corrector.correction import Edit
from cectrain.documents.document import OBJECT, Passage, join_parts

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_XML = "{http://www.w3.org/XML/1998/namespace}"
_PROSE = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
_MOST = 1 << 28  # bytes of all parts; more is a trap rather than a text
_SIGNS = {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_OBJECTS = {"sym", "drawing", "pict", "object", "AlternateContent"}
_KEPT = {
    f"{_W}{name}" for name in ("ins", "moveTo", "fldSimple", "rubyBase")
}  # read, but not changed
_DELETED = {f"{_W}{name}" for name in ("del", "moveFrom", "rt")}
Element = Any  # of lxml, which has no types
Change = tuple[int, int, str]


class _Text(NamedTuple):
    """A text of a run: where it begins in the source, its element and its part of the file."""

    start: int
    element: Element
    part: str


class WordDocument:
    """A Word file; its source has a line for each paragraph.

    date: of the changes, in the form of ISO 8601; None: now.
    """

    def __init__(self, data: bytes, date: str | None = None) -> None:
        self._data = data
        self._date = date or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._roots = {name: _parse(name, part) for name, part in _read_parts(data).items()}
        self._texts: list[_Text] = []
        self._paragraphs: list[list[tuple[int, int] | str]] = []
        source: list[str] = []
        at = 0
        for name, root in self._roots.items():
            for paragraph in _paragraphs(root):
                spans: list[tuple[int, int] | str] = []
                for text, element in paragraph:
                    spans.append(text if element is None else (at, at + len(text)))
                    if element is not None:
                        self._texts.append(_Text(at, element, name))
                    source.append(text)
                    at += len(text)
                self._paragraphs.append(spans)
                source.append("\n")
                at += 1
        self.source = "".join(source)

    def passages(self) -> Iterator[Passage]:
        """Yield the paragraphs, those of headers, notes and text boxes too."""
        for spans in self._paragraphs:
            yield join_parts(self.source, spans)

    def write(self, edits: Sequence[Edit]) -> bytes:
        """Return the file with tracked changes; a document is written once."""
        changes: dict[Element, list[Change]] = {}
        parts: set[str] = set()
        for edit in edits:
            place = bisect_right(self._texts, edit.start, key=lambda text: text.start) - 1
            start, element, part = self._texts[place]
            changes.setdefault(element, []).append(
                (edit.start - start, edit.end - start, edit.target)
            )
            parts.add(part)
        numbers = re.findall(rb'w:id="(\d{1,9})"', b"".join(_read_parts(self._data).values()))
        identities = count(max(map(int, numbers), default=0) + 1)
        for run in dict.fromkeys(element.getparent() for element in changes):
            _track_changes(run, changes, identities, self._date)
        return _replace_parts(self._data, {name: self._roots[name] for name in parts})


def _read_parts(data: bytes) -> dict[str, bytes]:
    """Return the parts with prose of a Word file; raise InputError where it is none."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError("has a password, or is of Word 97: save it as .docx without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = file.namelist()
            if (size := sum(info.file_size for info in file.infolist())) > _MOST:
                raise InputError(f"unpacks to {size:,} bytes: at most {_MOST:,} are read")
            if any(name.endswith("vbaProject.bin") for name in names):
                raise InputError("has macros: save it as .docx, which has none")
            parts = {name: file.read(name) for name in names if _PROSE.fullmatch(name)}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise InputError(f"is no Word file, or a damaged one ({error})") from error
    if not any(name.startswith("word/document") for name in parts):
        raise InputError("is no Word file: it has no word/document.xml")
    return parts


def _parse(name: str, data: bytes) -> Element:
    """Return the root of a part; nothing that its entities name is read."""
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingPackageError(f"Word files need lxml: {how_to_install('documents')}") from error
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise InputError(f"has damaged XML in {name} ({error})") from error
    if root.getroottree().docinfo.doctype:
        raise InputError(f"defines entities of XML in {name}: save it with a word processor")
    return root


def _paragraphs(root: Element) -> Iterator[list[tuple[str, Element | None]]]:
    """Yield the texts of each paragraph, each with its element where it may be changed."""
    depth = 0  # of fields, whose results a word processor writes again
    for paragraph in root.iter(f"{_W}p"):
        texts: list[tuple[str, Element | None]] = []
        for run in paragraph.iter(f"{_W}r"):
            around = [element.tag for element in _ancestors(run, paragraph)]
            if f"{_W}p" in around or not _DELETED.isdisjoint(around):
                continue
            is_kept = not _KEPT.isdisjoint(around)
            for child in run:
                name = str(child.tag).rpartition("}")[2]
                if name == "fldChar":
                    kind = child.get(f"{_W}fldCharType")
                    depth += {"begin": 1, "end": -1}.get(kind, 0)
                elif name == "t":
                    texts.append((child.text or "", None if is_kept or depth else child))
                elif sign := OBJECT if name in _OBJECTS else _SIGNS.get(name):
                    texts.append((sign, None))
        yield texts


def _ancestors(element: Element, top: Element) -> Iterator[Element]:
    """Yield the elements between an element and one around it."""
    while (element := element.getparent()) is not top:
        yield element


def _track_changes(
    run: Element, changes: Mapping[Element, list[Change]], identities: Iterator[int], date: str
) -> None:
    """Replace a run by its pieces, and those that a change deletes and inserts."""
    pieces: list[Element] = []

    def add(text: str, kind: str = "") -> None:
        if not text:
            return
        piece = _copy_run(run)
        made = piece.makeelement(
            f"{_W}{'delText' if kind == 'del' else 't'}", {f"{_XML}space": "preserve"}
        )
        made.text = text
        piece.append(made)
        if kind:
            marks = {"id": str(next(identities)), "author": "CEC-Zero", "date": date}
            change = run.makeelement(f"{_W}{kind}", {f"{_W}{key}": marks[key] for key in marks})
            change.append(piece)
            piece = change
        pieces.append(piece)

    for child in [*run]:
        if child.tag == f"{_W}rPr":
            continue
        if child not in changes:
            piece = _copy_run(run)
            piece.append(child)
            pieces.append(piece)
            continue
        done = 0
        for start, end, target in changes[child]:
            add(child.text[done:start])
            add(child.text[start:end], "del")
            add(target, "ins")
            done = end
        add(child.text[done:])
    pieces[-1].tail = run.tail
    parent, place = run.getparent(), run.getparent().index(run)
    parent[place : place + 1] = pieces


def _copy_run(run: Element) -> Element:
    """Return a run with the properties of another and no content."""
    copy = run.makeelement(run.tag, dict(run.attrib), run.nsmap)
    copy.extend(deepcopy(child) for child in run.iterchildren(f"{_W}rPr"))
    return copy


def _replace_parts(data: bytes, roots: Mapping[str, Element]) -> bytes:
    """Return a file in which parts are replaced, and all others are the same byte for byte."""
    if not roots:
        return data
    from lxml import etree

    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            root = roots.get(info.filename)
            part = (
                old.read(info)
                if root is None
                else etree.tostring(
                    root.getroottree(), encoding="UTF-8", xml_declaration=True, standalone=True
                )
            )
            new.writestr(info, part)
    return made.getvalue()
