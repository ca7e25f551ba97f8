"""Plain text, one sentence (or paragraph) a line."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.corpus.lines import blocks, numbers, split
from cecdata.corpus.rows import Columns, Rows, gather
from cecdata.corpus.sources import Source, opened
from cecdata.errors import InputError


def read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """The lines of a text file; an empty line is a row with an empty text."""
    del batch_rows  # a block of bytes sets the size here
    if source.path is not None and columns.text is not None:
        raise InputError(
            f"{source.label}: a text file has no column {columns.text!r}; leave --text-column out"
        )
    with opened(source) as stream:
        for block in blocks(stream, source):
            lines = split(block.data)
            yield gather(source, lines, None, numbers(block.first_line, len(lines)), block.rejects)
