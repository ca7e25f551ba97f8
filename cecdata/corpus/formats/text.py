"""Plain text, one sentence (or paragraph) per line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from cecdata.common.errors import InputError
from cecdata.corpus.lines import Block, blocks, numbers, split
from cecdata.corpus.rows import Format, Rows, gather
from cecdata.corpus.sources import Columns, Source, opened


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the lines of a text file; an empty line is a row with an empty text."""
    del columns, batch_rows  # plain text has no columns; a block of bytes is a batch
    with opened(source) as stream:
        for number, block in enumerate(blocks(stream, source)):
            if number == 0 and source.guessed:
                _refuse_json(block, source)
            lines = split(block.data)
            yield gather(source, lines, None, numbers(block.first_line, len(lines)), block.rejects)


def _values(source: Source) -> Iterator[list[str]]:
    """Yield the fields of each line, which tabs separate."""
    with opened(source) as stream:
        for block in blocks(stream, source):
            for line in block.data.split(b"\n")[:-1]:
                yield line.decode("utf-8", "replace").split("\t")


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


FORMAT = Format(_read, _values, (".txt",), columns=False)
