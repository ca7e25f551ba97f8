"""Plain text, one sentence (or paragraph) per line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from cecdata.common.errors import InputError
from cecdata.corpus.lines import Block, split_blocks
from cecdata.corpus.sources import Format, Record, Reject, Rows, Source, open_source, parse_json


def _read_rows(source: Source, text_column: str | None, batch_rows: int) -> Iterator[Rows]:
    """Yield the lines of a text file; an empty line is a row with an empty text."""
    from cecdata.corpus.rows import build_rows, split_lines

    del text_column, batch_rows  # plain text has no columns; a block of bytes is a batch
    for block in _read_blocks(source):
        lines = split_lines(block.data)
        rows = block.first_line + np.arange(len(lines))
        yield build_rows(source, lines, None, rows, block.rejects)


def _read_records(source: Source) -> Iterator[Record | Reject]:
    """Yield each line with its number, and those that are too long as rejects."""
    for block in _read_blocks(source):
        yield from block.rejects
        lines = block.data.decode("utf-8", "surrogateescape").split("\n")[:-1]
        yield from map(Record, itertools.count(block.first_line), lines)


def _read_blocks(source: Source) -> Iterator[Block]:
    """Yield the lines of a file in blocks, unless the first one is JSON."""
    with open_source(source) as stream:
        for number, block in enumerate(split_blocks(stream, source)):
            if number == 0:
                _refuse_json(block, source)
            yield block


def _refuse_json(block: Block, source: Source) -> None:
    """Raise InputError if the first line is JSON, and the user did not name the format."""
    first = block.data.lstrip().partition(b"\n")[0]
    is_like_json = first.startswith((b"{", b"[{"))
    if source.guessed and is_like_json and parse_json(first) is not None:
        raise InputError(
            f"{source.label}: its first line is JSON: name the file *.jsonl or *.json, or add "
            "--format jsonl, or --format text if each line is a sentence"
        )


FORMAT = Format(_read_rows, _read_records, (".txt",), columns=False)
