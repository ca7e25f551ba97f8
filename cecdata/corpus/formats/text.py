"""Plain text, one sentence (or paragraph) per line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from cecdata.common.errors import InputError
from cecdata.corpus.lines import Block, blocks, numbers
from cecdata.corpus.sources import (
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
        for number, block in enumerate(blocks(stream, source)):
            if number == 0 and source.guessed:
                _refuse_json(block, source)
            lines = split_lines(block.data)
            yield gather(source, lines, None, numbers(block.first_line, len(lines)), block.rejects)


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
