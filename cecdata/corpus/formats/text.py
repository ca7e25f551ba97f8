"""Plain text, one sentence (or paragraph) a line."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.corpus.lines import blocks, numbers, split
from cecdata.corpus.rows import Columns, Rows, gather
from cecdata.corpus.sources import Source, opened


def read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """The lines of a text file; an empty line is a row with an empty text."""
    del (
        batch_rows,
        columns,
    )  # a block of bytes sets the size; `reading` refuses columns of text alone
    with opened(source) as stream:
        for block in blocks(stream, source):
            lines = split(block.data)
            yield gather(source, lines, None, numbers(block.first_line, len(lines)), block.rejects)
