"""Plain text, one sentence (or paragraph) per line."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import numpy as np

from cecdata.common.errors import InputError
from cecdata.corpus.lines import Block, blocks, numbers
from cecdata.corpus.sources import (
    MAX_BYTES,
    Format,
    Record,
    Reject,
    Rows,
    Source,
    open_source,
)


def _read(source: Source, text_column: str | None, batch_rows: int) -> Iterator[Rows]:
    """Yield the lines of a text file; an empty line is a row with an empty text."""
    from cecdata.corpus.rows import gather, split_lines

    del text_column, batch_rows  # plain text has no columns; a block of bytes is a batch
    with open_source(source) as stream:
        parts = blocks(stream, source)
        if source.join_lines:
            yield from _paragraphs(parts, source)
            return
        for number, block in enumerate(parts):
            if number == 0 and source.guessed:
                _refuse_json(block, source)
            lines = split_lines(block.data)
            yield gather(source, lines, None, numbers(block.first_line, len(lines)), block.rejects)


def _paragraphs(parts: Iterator[Block], source: Source) -> Iterator[Rows]:
    """Yield the paragraphs, with the number of their first line.

    A blank line ends one, and an indented line, a heading or an item of a list begins one.
    """
    import pyarrow as pa

    from cecdata.corpus.rows import gather

    paragraph: list[bytes] = []
    first = size = 0
    for block in parts:
        texts, rows = [], []
        for number, line in enumerate(block.data.split(b"\n")[:-1], block.first_line):
            if paragraph and (_BEGINS.match(line) or size + len(line) > MAX_BYTES):
                texts.append(b"\n".join(paragraph))
                rows.append(first)
                paragraph, size = [], 0
            if line.strip():
                first = first if paragraph else number
                paragraph.append(line)
                size += len(line) + 1
        text = pa.array(texts, pa.binary())
        yield gather(source, text, None, np.array(rows, np.int64), block.rejects)
    if paragraph:
        yield gather(source, pa.array([b"\n".join(paragraph)]), None, np.array([first], np.int64))


# a blank line, two spaces, an ideographic space, a mark of a list or heading, or a number
_BEGINS = re.compile(rb"\s*$|[ \t]{2}|\t|\xe3\x80\x80|[-*+#>] |[0-9]{1,3}(?:[.)] |\xe3\x80\x81)")


def _records(source: Source) -> Iterator[Record | Reject]:
    """Yield the lines."""
    with open_source(source) as stream:
        for block in blocks(stream, source):
            yield from block.rejects
            lines = block.data.decode("utf-8", "surrogateescape").split("\n")[:-1]
            yield from map(Record, itertools.count(block.first_line), lines)


def _refuse_json(block: Block, source: Source) -> None:
    """Raise InputError if the first line is a JSON object: the user did not name the format."""
    first = block.data.lstrip().partition(b"\n")[0]
    try:
        is_object = first.startswith(b"{") and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return
    if is_object:
        raise InputError(
            f"{source.label}: standard input looks like JSON lines: add --format jsonl (with "
            "--text-column), or --format text if each line is a sentence"
        )


FORMAT = Format(_read, _records, (".txt",), columns=False)
