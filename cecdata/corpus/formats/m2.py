"""M2 (see `common.m2`): a row is one sentence corrected by its first annotator.

A line T has it; otherwise the edits do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import numpy as np

from cecdata.common.m2 import edited, parsed, sentences
from cecdata.common.text import joined
from cecdata.corpus.lines import BLOCK_BYTES, blocks
from cecdata.corpus.sources import EXCERPT, Columns, Format, Record, Reject, Source, opened

if TYPE_CHECKING:
    from cecdata.corpus.rows import Rows

_Pair = tuple[int, str, list[str]]  # number of the line S, source, a target for each annotator


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the corrected sentences; a sentence without edits is its own correction."""
    import pyarrow as pa

    from cecdata.corpus.rows import gather

    del columns
    for part in _batches(source, batch_rows):
        rejects = [pair for pair in part if isinstance(pair, Reject)]
        pairs = [pair for pair in part if not isinstance(pair, Reject)]
        text = [targets[0].encode("utf-8", "surrogateescape") for _, _, targets in pairs]
        rows = np.array([row for row, _, _ in pairs], np.int64)
        yield gather(source, pa.array(text, pa.binary()), None, rows, rejects)


def _batches(source: Source, most: int) -> Iterator[list[_Pair | Reject]]:
    """Yield at most so many sentences, or a few megabytes of them, at a time."""
    batch: list[_Pair | Reject] = []
    size = 0
    for pair in _pairs(source):
        batch.append(pair)
        size += 0 if isinstance(pair, Reject) else len(pair[1])
        if len(batch) >= most or size >= BLOCK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _records(source: Source) -> Iterator[Record | Reject]:
    """Yield each sentence with its corrections, the first annotator's first."""
    for pair in _pairs(source):
        if isinstance(pair, Reject):
            yield pair
        else:
            row, sentence, targets = pair
            yield Record(row, {"source": sentence, "target": targets[0], "others": targets[1:]})


def _pairs(source: Source) -> Iterator[_Pair | Reject]:
    rejects: list[Reject] = []
    with opened(source) as stream:
        for block in sentences(_lines(stream, source, rejects)):
            yield from rejects
            rejects.clear()
            yield _pair(block, source)
    yield from rejects


def _lines(stream: IO[bytes], source: Source, rejects: list[Reject]) -> Iterator[tuple[int, str]]:
    for block in blocks(stream, source):
        rejects += block.rejects
        lines = block.data.decode("utf-8", "surrogateescape").split("\n")[:-1]
        yield from enumerate(lines, block.first_line)


def _pair(lines: list[tuple[int, str]], source: Source) -> _Pair | Reject:
    """Return the pair in the lines of one sentence, or reject them."""
    row, line = lines[0]
    try:
        tokens, corrected, edits = parsed(lines)
        targets = [edited(tokens, edits[annotator]) for annotator in sorted(edits)]
    except ValueError as error:
        excerpt = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return Reject(row, source.origin, excerpt[:EXCERPT], "invalid_m2", str(error))
    return row, joined(tokens), corrected or targets or [joined(tokens)]


FORMAT = Format(_read, _records, (".m2",), columns=False)
