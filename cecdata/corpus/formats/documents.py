"""Documents: JSON files, Markdown and web pages. Each paragraph, or each object, is a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.columns import Columns, Picked
from cecdata.corpus.formats.base import Format
from cecdata.corpus.formats.jsonl import parse_value, pick_keys
from cecdata.corpus.formats.web import page_text
from cecdata.corpus.lines import blocks, numbers
from cecdata.corpus.rows import EXCERPT, Reject, Rows, gather
from cecdata.corpus.sources import Source, opened

_MAX_BYTES = 1 << 28  # of a file that is parsed as a whole
_AT_ONCE = 65_536


def paragraphs(source: Source, texts: Sequence[str]) -> Iterator[Rows]:
    """Yield paragraphs as rows; their numbers count from 1."""
    for start in range(0, len(texts), _AT_ONCE):
        part = [text.encode("utf-8", "surrogatepass") for text in texts[start : start + _AT_ONCE]]
        yield gather(source, pa.array(part, pa.binary()), None, numbers(start + 1, len(part)))


def _read_markdown(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the paragraphs, headings and list items of a Markdown file without their marks."""
    del columns, batch_rows
    yield from paragraphs(source, _markdown_lines(_whole(source)))


def _markdown_lines(data: bytes) -> list[str]:
    from markdown_it import MarkdownIt

    inline = (t for t in MarkdownIt("commonmark").enable("table").parse(_text(data)) if t.children)
    lines: list[str] = []
    for token in inline:
        parts = (
            "\n" if child.type in {"softbreak", "hardbreak"} else child.content
            for child in token.children or ()
            if child.type != "html_inline"
        )
        lines += "".join(parts).split("\n")
    return [line for line in lines if line.strip()]


def _read_html(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the paragraphs of the main text of a web page."""
    del columns, batch_rows
    texts = page_text(_whole(source))
    if texts:
        yield from paragraphs(source, texts)
        return
    reject = Reject(1, source.origin, "", "no_text", "no main text was found in the page")
    yield gather(source, pa.array([], pa.binary()), None, numbers(1, 0), [reject])


def _read_json(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the objects, or the strings, of a list in a JSON file; a single object is one row.

    The list may be the only list among an object's values, as in `{"data": [...]}`. A file of JSON
    lines is read as such.
    """
    data = _whole(source)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        from cecdata.corpus.formats import jsonl

        if data.lstrip().startswith(b"{") and b"}\n" in data:
            yield from jsonl.FORMAT.read(source, columns, batch_rows)
            return
        raise InputError(
            f"{source.label}: not valid JSON ({error}); if each line is an object, --format jsonl"
        ) from error
    values = _listed(value)
    if all(isinstance(each, str) for each in values):
        yield from paragraphs(source, [str(each) for each in values])
        return
    picked = pick_keys(columns, values, source)
    for start in range(0, len(values), batch_rows):
        yield _objects(values[start : start + batch_rows], start + 1, picked, source)


def _listed(value: object) -> list[object]:
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list)]
        value = lists[0] if len(lists) == 1 else [value]
    return value if isinstance(value, list) else [value]


def _objects(values: Iterable[object], first: int, picked: Picked, source: Source) -> Rows:
    parsed, rows, rejects = [], [], []
    for row, value in enumerate(values, first):
        shown = json.dumps(value, ensure_ascii=True)[:EXCERPT]
        one = parse_value(value, row, picked, source, shown)
        if isinstance(one, Reject):
            rejects.append(one)
        else:
            parsed.append(one)
            rows.append(row)
    text, origin, licence = (
        pa.array([one[place] for one in parsed], kind)
        for place, kind in enumerate((pa.binary(), pa.string(), pa.string()))
    )
    return gather(source, text, origin, np.array(rows, dtype=np.int64), rejects, licence)


def _whole(source: Source) -> bytes:
    """Return a document in UTF-8 with line feeds; raise InputError if it is too large."""
    with opened(source) as stream:
        parts: list[bytes] = []
        size = 0
        for block in blocks(stream, source, _MAX_BYTES):
            parts.append(block.data)
            size += len(block.data)
            if block.rejects or size > _MAX_BYTES:
                raise InputError(
                    f"{source.label}: the document is larger than {_MAX_BYTES >> 20} MiB: write it "
                    "as JSON lines (--format jsonl), or split it"
                )
    return b"".join(parts)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


JSON = Format(_read_json, (".json",))
MARKDOWN = Format(_read_markdown, (".md", ".markdown"), columns=False)
HTML = Format(_read_html, (".html", ".htm"), columns=False)
