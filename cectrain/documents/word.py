"""Word files (.docx): each correction is a tracked change, which its reader accepts or rejects.

Fields, what others inserted or deleted, and all parts of the file without prose stay as they are.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timezone
from functools import partial
from itertools import chain, takewhile
from operator import is_not
from typing import Any

from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cectrain.corrector.correction import Edit
from cectrain.documents.document import OBJECT, Passage, join_parts

try:
    from lxml import etree
    from lxml.builder import ElementMaker
except ImportError as error:
    raise MissingPackageError(f"Word files need lxml: {how_to_install('documents')}") from error

_SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_W = f"{{{_SPACE}}}"
_MAKE = ElementMaker(namespace=_SPACE, nsmap={"w": _SPACE})
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
_TYPES = "[Content_Types].xml"
_COMMENTS = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_PROSE = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
_MOST = 1 << 28  # bytes of all parts; more is a trap rather than a text
#: what stands for elements of a run
_SIGNS = dict.fromkeys(("sym", "drawing", "pict", "object", "AlternateContent"), OBJECT)
_SIGNS |= {"tab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
#: of what is read, but not changed, and of what is not read
_KEPT = {f"{_W}{name}" for name in ("ins", "moveTo", "fldSimple", "rubyBase")}
_DELETED = {f"{_W}{name}" for name in ("del", "moveFrom", "rt")}
#: what has no comments in a word processor
_ASIDE = [f"{_W}{name}" for name in ("hdr", "ftr", "footnote", "endnote", "txbxContent")]
Element = Any  # of lxml, which has no types
Change = tuple[int, int, Edit]  # start and end in a text


class WordDocument:
    """A Word file; its source has a line for each paragraph.

    date: of the changes, in the form of ISO 8601; None: now. comments: whether they say why.
    """

    def __init__(self, data: bytes, date: str | None = None, comments: bool = False) -> None:
        date = date or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._authorship = {f"{_W}author": "CEC-Zero", f"{_W}date": date}  # of each change
        self._data, self._comments = data, comments
        self._parts = _read_parts(data)
        parts = {info.filename: part for info, part in self._parts}
        self._roots = {
            name: _parse_xml(name, part) for name, part in parts.items() if _PROSE.fullmatch(name)
        }
        self._texts: list[tuple[int, Element]] = []  # where each begins in the source
        self._paragraphs: list[list[tuple[int, int] | str]] = []  # as `join_parts` takes them
        self.source = "".join(self._read_paragraphs())

    def _read_paragraphs(self) -> Iterator[str]:
        """Yield the texts of the source, and note where they are."""
        end = 0
        for paragraph in chain.from_iterable(map(_list_paragraphs, self._roots.values())):
            spans: list[tuple[int, int] | str] = []
            for text, element in paragraph:
                start, end = end, end + len(text)
                if element is None:  # what stands for a tab or an object, and cannot be edited
                    spans.append(text)
                else:
                    spans.append((start, end))
                    self._texts.append((start, element))
                yield text
            self._paragraphs.append(spans)
            yield "\n"
            end += 1

    def passages(self) -> Iterator[Passage]:
        """Yield the paragraphs, those of headers, notes and text boxes too."""
        for spans in self._paragraphs:
            yield join_parts(self.source, spans)

    def write(self, edits: Sequence[Edit]) -> bytes:
        """Return the file with tracked changes; a document is written once."""
        if not edits:
            return self._data
        parts = {info.filename: part for info, part in self._parts}
        xml = b"".join(part for name, part in parts.items() if name.endswith(".xml"))
        self._last_id = max(map(int, re.findall(rb':id="(\d{1,9})"', xml)), default=0)
        changes = self._group_by_element(edits)
        changed_roots = {element.getroottree().getroot() for element in changes}
        runs = dict.fromkeys(element.getparent() for element in changes)
        comments = [comment for run in runs for comment in self._track_changes(run, changes)]
        new_parts = {name: root for name, root in self._roots.items() if root in changed_roots}
        if comments:
            new_parts |= _add_comments(parts, comments)
        return _write_parts(self._parts, new_parts)

    def _group_by_element(self, edits: Sequence[Edit]) -> dict[Element, list[Change]]:
        """Return the edits of each element's text, with their places in it."""
        changes: dict[Element, list[Change]] = {}
        for edit in edits:
            index = bisect_right(self._texts, edit.start, key=lambda text: text[0]) - 1
            start, element = self._texts[index]
            changes.setdefault(element, []).append((edit.start - start, edit.end - start, edit))
        return changes

    def _track_changes(
        self, run: Element, changes: Mapping[Element, list[Change]]
    ) -> list[Element]:
        """Replace a run by its pieces and tracked changes; return the comments on these."""
        pieces: list[Element] = []
        comments: list[Element] = []
        says_why = self._comments and next(run.iterancestors(*_ASIDE), None) is None
        for child in [*run]:
            if child not in changes:
                pieces += [_copy_run(run, child)] if child.tag != f"{_W}rPr" else []
                continue
            done = 0
            for start, end, edit in changes[child]:
                pieces += _copy_text(run, child.text[done:start])
                deleted = _copy_text(run, child.text[start:end], "delText")
                inserted = _copy_text(run, edit.target)
                tracked = [self._wrap("del", piece) for piece in deleted]
                tracked += [self._wrap("ins", piece) for piece in inserted]
                if says_why:
                    reason = _MAKE.p(_MAKE.r(_MAKE.t(edit.message)))
                    comments.append(self._wrap("comment", reason))
                    tracked = _refer_to(comments[-1], tracked)
                pieces += tracked
                done = end
            pieces += _copy_text(run, child.text[done:])
        pieces[-1].tail = run.tail
        parent, place = run.getparent(), run.getparent().index(run)
        parent[place : place + 1] = pieces
        return comments

    def _wrap(self, name: str, content: Element) -> Element:
        """Return an element of ours around another, with a number of its own."""
        self._last_id += 1
        return _MAKE(name, {f"{_W}id": str(self._last_id), **self._authorship}, content)


def _read_parts(data: bytes) -> list[tuple[zipfile.ZipInfo, bytes]]:
    """Return the parts of a Word file; raise InputError where it is none."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError("has a password, or is of Word 97: save it as .docx without a password")
    try:
        file = zipfile.ZipFile(io.BytesIO(data))
        names, size = file.namelist(), sum(info.file_size for info in file.infolist())
        parts = [(info, file.read(info)) for info in file.infolist() if size <= _MOST]
    except Exception as error:  # zipfile and zlib raise a dozen of them for a damaged file
        raise InputError(f"is no Word file, or a damaged one ({error})") from error
    if size > _MOST:
        raise InputError(f"unpacks to {size:,} bytes: at most {_MOST:,} are read")
    if not any(name.startswith("word/document") for name in names) or _TYPES not in names:
        raise InputError(f"is no Word file: it has no word/document.xml or no {_TYPES}")
    return parts


def _parse_xml(name: str, data: bytes) -> Element:
    """Return the root of a part; nothing that its entities name is read."""
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise InputError(f"has damaged XML in {name} ({error})") from error
    if root.getroottree().docinfo.doctype:
        raise InputError(f"defines entities of XML in {name}: save it with a word processor")
    return root


def _list_paragraphs(root: Element) -> Iterator[list[tuple[str, Element | None]]]:
    """Yield the texts of each paragraph, each with its element where it may be changed."""
    depth = 0  # of fields, whose results a word processor writes again
    for paragraph in root.iter(f"{_W}p"):
        texts: list[tuple[str, Element | None]] = []
        for run in paragraph.iter(f"{_W}r"):
            path = takewhile(partial(is_not, paragraph), run.iterancestors())
            around = [element.tag for element in path]  # elements between the paragraph and the run
            if f"{_W}p" in around or not _DELETED.isdisjoint(around):
                continue  # of a paragraph in a text box of this one, or deleted
            is_kept = not _KEPT.isdisjoint(around)
            for child in run:
                name = str(child.tag).rpartition("}")[2]
                if name == "fldChar":
                    kind = child.get(f"{_W}fldCharType")
                    depth += {"begin": 1, "end": -1}.get(kind, 0)
                elif name == "t":
                    texts.append((child.text or "", None if is_kept or depth else child))
                elif name in _SIGNS:
                    texts.append((_SIGNS[name], None))
        yield texts


def _copy_run(run: Element, *content: Element) -> Element:
    """Return a run with the properties of another and content of its own."""
    copy = run.makeelement(run.tag, dict(run.attrib), run.nsmap)
    copy.extend(deepcopy(child) for child in run.iterchildren(f"{_W}rPr"))
    copy.extend(content)
    return copy


def _copy_text(run: Element, text: str, name: str = "t") -> list[Element]:
    """Return a run with a text in a list, which is empty where the text is."""
    space = {"{http://www.w3.org/XML/1998/namespace}space": "preserve"}
    return [_copy_run(run, _MAKE(name, text, space))] if text else []


def _refer_to(comment: Element, pieces: list[Element]) -> list[Element]:
    """Return pieces of a paragraph between the marks of a comment's range, then its reference."""
    attributes = {f"{_W}id": comment.get(f"{_W}id")}
    start, end = _MAKE.commentRangeStart(attributes), _MAKE.commentRangeEnd(attributes)
    return [start, *pieces, end, _MAKE.r(_MAKE.commentReference(attributes))]


def _add_comments(parts: Mapping[str, bytes], comments: list[Element]) -> dict[str, Element]:
    """Add comments; return the changed parts by path, with those that must name a new part."""
    main = next(name for name in parts if name.startswith("word/document"))
    relations = f"word/_rels/{posixpath.basename(main)}.rels"
    empty = f'<Relationships xmlns="{_PACKAGE}/relationships"/>'.encode()
    links = _parse_xml(relations, parts.get(relations, empty))
    linked = next((link.get("Target", "") for link in links if link.get("Type") == _RELATED), None)
    path = posixpath.join("/word", linked or "comments.xml")
    name = path.removeprefix("/")  # of the part
    root = _parse_xml(path, parts[name]) if name in parts else _MAKE.comments()
    root.extend(comments)
    if linked is not None:
        return {name: root}
    link = {"Id": "cecComments", "Type": _RELATED, "Target": path}
    etree.SubElement(links, f"{{{_PACKAGE}/relationships}}Relationship", link)
    types = _parse_xml(_TYPES, parts[_TYPES])
    override = {"PartName": path, "ContentType": _COMMENTS}
    etree.SubElement(types, f"{{{_PACKAGE}/content-types}}Override", override)
    return {name: root, relations: links, _TYPES: types}


def _write_parts(
    parts: Sequence[tuple[zipfile.ZipInfo, bytes]], roots: Mapping[str, Element]
) -> bytes:
    """Return a file in which some parts are others, and the rest is the same byte for byte."""
    print_xml = partial(etree.tostring, encoding="UTF-8", xml_declaration=True, standalone=True)
    texts = {name: print_xml(root.getroottree()) for name, root in roots.items()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for info, part in parts:
            file.writestr(info, texts.pop(info.filename, part))
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return made.getvalue()
