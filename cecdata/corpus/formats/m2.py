"""M2: sentences in tokens with their edits, as ERRANT and ChERRANT write them.

S 我 门 走 。
T0-A0 我 们 走 。
A 1 2|||S|||们|||REQUIRED|||-NONE-|||0

A row is one sentence corrected by its first annotator: a line T has it; otherwise the edits do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from cecdata.common.text import join_tokens
from cecdata.corpus.lines import BLOCK_BYTES, split_blocks
from cecdata.corpus.sources import EXCERPT, Format, Record, Reject, Rows, Source, open_source

_NOTHING = ("-NONE-", "")
_RIGHT = ("没有错误", "")  # in place of a sentence that equals the source
_Line = tuple[int, str]  # with its number
_Edit = tuple[int, int, list[str], int]  # start, end, tokens, number of its line
_Pair = tuple[int, str, list[str]]  # number of the line S, source, a target for each annotator


def _read_rows(source: Source, text_column: str | None, batch_rows: int) -> Iterator[Rows]:
    """Yield the corrected sentences; a sentence without edits is its own correction."""
    import pyarrow as pa

    from cecdata.corpus.rows import build_rows

    del text_column  # all text is corrected sentences
    for part in _batch_pairs(source, batch_rows):
        rejects = [pair for pair in part if isinstance(pair, Reject)]
        pairs = [pair for pair in part if not isinstance(pair, Reject)]
        text = [targets[0].encode("utf-8", "surrogateescape") for _, _, targets in pairs]
        rows = np.array([row for row, _, _ in pairs], np.int64)
        yield build_rows(source, pa.array(text, pa.binary()), None, rows, rejects)


def _batch_pairs(source: Source, most: int) -> Iterator[list[_Pair | Reject]]:
    """Yield at most so many sentences, or a few megabytes of them, at a time."""
    batch: list[_Pair | Reject] = []
    size = 0
    for pair in _read_pairs(source):
        batch.append(pair)
        size += 0 if isinstance(pair, Reject) else len(pair[1])
        if len(batch) >= most or size >= BLOCK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_records(source: Source) -> Iterator[Record | Reject]:
    """Yield each sentence with its corrections, the first annotator's first."""
    for pair in _read_pairs(source):
        if isinstance(pair, Reject):
            yield pair
        else:
            row, sentence, targets = pair
            yield Record(row, {"source": sentence, "target": targets[0], "others": targets[1:]})


def _read_pairs(source: Source) -> Iterator[_Pair | Reject]:
    """Yield each sentence with its targets, and what is rejected, in the order of the file."""
    rejects: list[Reject] = []
    with open_source(source) as stream:
        for block in _split_sentences(_read_lines(stream, source, rejects)):
            yield from rejects
            rejects.clear()
            yield _parse_pair(block, source)
    yield from rejects


def _read_lines(stream: IO[bytes], source: Source, rejects: list[Reject]) -> Iterator[_Line]:
    """Yield the lines of a stream with their numbers; overlong ones go to `rejects`."""
    for block in split_blocks(stream, source):
        rejects += block.rejects
        lines = block.data.decode("utf-8", "surrogateescape").split("\n")[:-1]
        yield from enumerate(lines, block.first_line)


def _parse_pair(lines: list[_Line], source: Source) -> _Pair | Reject:
    """Return a sentence with its lines T as targets, or without any what the edits make of it."""
    row, line = lines[0]
    try:
        tokens, corrected, edits = _parse_lines(lines)
        targets = [_apply_edits(tokens, edits[annotator]) for annotator in sorted(edits)]
    except ValueError as error:
        excerpt = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return Reject(row, source.origin, excerpt[:EXCERPT], "invalid_m2", str(error))
    return row, join_tokens(tokens), corrected or targets or [join_tokens(tokens)]


def _split_sentences(numbered: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines of each sentence, blank ones left out, from its line S on."""
    lines: list[_Line] = []
    for number, line in numbered:
        if line.startswith("S ") or line == "S":
            if lines:
                yield lines
            lines = [(number, line)]
        elif line.strip():
            lines.append((number, line))
    if lines:
        yield lines


def _parse_lines(lines: list[_Line]) -> tuple[list[str], list[str], dict[int, list[_Edit]]]:
    """Return a sentence in tokens, its corrections in lines T, and annotator → edits in lines A."""
    first, sentence = lines[0]
    if sentence.partition(" ")[0] != "S":
        raise ValueError(f"line {first} must begin with S, A or T, that of a sentence with S")
    tokens, corrected = _split_tokens(sentence[1:]), list[str]()
    edits: dict[int, list[_Edit]] = {}
    for number, line in lines[1:]:
        mark, _, rest = line.partition(" ")
        if mark == "A":
            try:
                place, kind, text, _, _, *_, annotator = rest.split("|||")
                changes = edits.setdefault(int(annotator), [])
                start, end = map(int, place.split())
            except ValueError:
                form = "`A start end|||type|||text|||…|||annotator`"
                raise ValueError(f"line {number} is not {form}") from None
            if kind.strip() != "noop" and start >= 0:
                words = [] if text.strip(" ") in _NOTHING else _split_tokens(text)
                changes.append((start, end, words, number))
        elif mark.startswith("T"):
            corrected.append(
                join_tokens(tokens if rest.strip(" ") in _RIGHT else _split_tokens(rest))
            )
        else:
            raise ValueError(f"line {number} must begin with S, A or T")
    return tokens, corrected, edits


def _split_tokens(text: str) -> list[str]:
    """Return the tokens of a line: one may be white space that is wide or ends a line elsewhere."""
    return [token for token in text.replace("\t", " ").split(" ") if token]


def _apply_edits(tokens: list[str], edits: list[_Edit]) -> str:
    """Return the corrected sentence; edits at one place are made in the file's order."""
    parts: list[str] = []
    at = 0
    for start, end, words, number in sorted(edits, key=lambda edit: edit[:2]):
        if not at <= start <= end <= len(tokens):
            raise ValueError(f"line {number} has an overlapping or impossible span {start} {end}")
        parts += tokens[at:start] + words
        at = end
    return join_tokens(parts + tokens[at:])


FORMAT = Format(_read_rows, _read_records, (".m2",), columns=False)
