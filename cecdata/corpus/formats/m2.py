"""M2: sentences in tokens with their edits, as ERRANT and ChERRANT write them.

    S 我 门 走 。
    T0-A0 我 们 走 。
    A 1 2|||S|||们|||REQUIRED|||-NONE-|||0

A row is one sentence corrected by its first annotator. A line T has it; otherwise the edits do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cecdata.common.text import joined
from cecdata.corpus.lines import BLOCK_BYTES, blocks
from cecdata.corpus.rows import EXCERPT, Format, Reject, Rows, gather
from cecdata.corpus.sources import Columns, Source, opened

_NOTHING = ("-NONE-", "")
_RIGHT = ("没有错误", "")  # in place of a sentence that equals the source
_MOST_LINES = 1 << 12  # of one sentence
_Pair = tuple[int, str, list[str]]  # number of the line S, source, a target for each annotator


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the corrected sentences; a sentence without edits is its own correction."""
    del columns
    for part in _batches(source, batch_rows):
        rejects = [each for each in part if isinstance(each, Reject)]
        pairs = [each for each in part if not isinstance(each, Reject)]
        text = [targets[0].encode("utf-8", "surrogateescape") for _, _, targets in pairs]
        rows = np.array([row for row, _, _ in pairs], np.int64)
        yield gather(source, pa.array(text, pa.binary()), None, rows, rejects)


def _batches(source: Source, most: int) -> Iterator[list[_Pair | Reject]]:
    """Yield at most so many sentences, or a few megabytes of them, at a time."""
    held: list[_Pair | Reject] = []
    size = 0
    for each in _pairs(source):
        held.append(each)
        size += 0 if isinstance(each, Reject) else len(each[1])
        if len(held) >= most or size >= BLOCK_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _values(source: Source) -> Iterator[object]:
    """Yield each sentence and all its corrections."""
    for each in _pairs(source):
        yield each if isinstance(each, Reject) else [*dict.fromkeys((each[1], *each[2]))]


def _pairs(source: Source) -> Iterator[_Pair | Reject]:
    held: list[str] = []
    first = 0
    with opened(source) as stream:
        for block in blocks(stream, source):
            yield from block.rejects
            lines = block.data.decode("utf-8", "surrogateescape").split("\n")[:-1]
            for number, line in enumerate(lines, block.first_line):
                if line.startswith("S ") or line == "S":
                    yield from _pair(held, first, source)
                    held, first = [line], number
                elif line.strip() and len(held) <= _MOST_LINES:
                    held.append(line)
    yield from _pair(held, first, source)


def _pair(held: list[str], row: int, source: Source) -> Iterator[_Pair | Reject]:
    """Yield the pair in the lines of one sentence, or reject them."""
    if not held:
        return
    tokens = held[0][1:].split()
    detail = "" if held[0].startswith("S") else "the file does not begin with a line S"
    try:
        targets = _targets(tokens, held[1:])
    except ValueError as error:
        detail = str(error)
    if not detail:
        yield row, joined(tokens), targets
        return
    shown = held[0].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    yield Reject(max(row, 1), source.origin, shown[:EXCERPT], "invalid_m2", detail)


def _targets(tokens: list[str], lines: list[str]) -> list[str]:
    """Return the corrected sentence of each annotator; without an edit it is the sentence."""
    if len(lines) == _MOST_LINES:
        raise ValueError(f"{_MOST_LINES:,} lines or more follow a line S")
    given: list[str] = []
    edits: dict[int, list[tuple[int, int, list[str]]]] = {}
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "A":
            place, kind, text, *_, annotator = rest.split("|||")
            changes = edits.setdefault(int(annotator), [])
            if kind.strip() != "noop":
                start, end = (int(part) for part in place.split())
                words = [] if text.strip() in _NOTHING else text.split()
                changes.append((start, end, words))
        elif mark.startswith("T"):
            given.append(joined(tokens if rest.strip() in _RIGHT else rest.split()))
        else:
            raise ValueError(f"a line must begin with S, T or A: {line[:40]!r}")
    found = [joined(_edited(tokens, edits[number])) for number in sorted(edits)]
    return given or found or [joined(tokens)]


def _edited(tokens: list[str], edits: list[tuple[int, int, list[str]]]) -> list[str]:
    parts: list[str] = []
    at = 0
    for start, end, words in sorted(edits, key=lambda edit: edit[:2]):
        if not at <= start <= end <= len(tokens):
            raise ValueError(f"the edit {start} {end} overlaps or exceeds {len(tokens)} tokens")
        parts += tokens[at:start] + words
        at = end
    return parts + tokens[at:]


FORMAT = Format(_read, _values, (".m2",), columns=False)
