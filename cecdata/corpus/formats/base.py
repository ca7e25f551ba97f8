"""The type of a corpus format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cecdata.corpus.columns import Columns
from cecdata.corpus.rows import Rows
from cecdata.corpus.sources import Source


@dataclass(frozen=True, slots=True)
class Format:
    """The reader of one format, and the suffixes of its files.

    `read(source, columns, batch_rows)` yields the rows of one file in their order, in batches of
    about `batch_rows` or of a few megabytes, in constant memory. It rejects a bad row and raises
    InputError for a bad file.
    """

    read: Callable[[Source, Columns, int], Iterator[Rows]]
    suffixes: tuple[str, ...]
    columns: bool = True  # False: a row is a text without further columns
    stream: bool = True  # False: cannot be read compressed or from standard input
