"""Rows to be scored: the record, files of four columns, and duplicate ids."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError

CHUNK_ROWS = 1024
BLOCK_BYTES = 1 << 18
_TAB, _LINE = b"\t\n"
_ROW_ENDS = (_TAB, _TAB, _TAB, _LINE)
COLUMNS = "id, source, target, prediction"


class Row(NamedTuple):
    """One sentence: as written, as it should be, and as a system corrected it."""

    id: str
    source: str
    target: str
    prediction: str


def read_raw(path: Path, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines, each of `size` bytes or a little more."""
    try:
        handle = path.open("rb")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"{path}: cannot be read ({reason}); give a file with {COLUMNS}"
        ) from error
    with handle:
        if handle.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            handle.seek(0)
        while raw := handle.read(size):
            yield raw + handle.readline()


def read_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[list[Row]]:
    r"""Yield the rows of a UTF-8 file of four tab-separated columns without a header, in blocks.

    Only `\n` and `\r\n` end a line, so a sentence can contain a paragraph separator. Raise
    InputError with the line's number for a row that cannot be read.
    """
    done = 0
    for raw in read_raw(path, size):
        rows = parse(raw, done, path)
        yield rows
        done += len(rows)


def parse(raw: bytes, before: int, path: Path) -> list[Row]:
    """Return the rows of a block; `before` is the number of lines before it, for messages."""
    return _parse_sound(raw) or _parse_lines(raw, before, path)


def _parse_lines(raw: bytes, before: int, path: Path) -> list[Row]:
    lines = raw.removesuffix(b"\n").split(b"\n")
    return [_parse(line, before + number, path) for number, line in enumerate(lines, start=1)]


def _parse_sound(raw: bytes) -> list[Row]:
    """Return all rows of a block at once; none if some line is malformed."""
    if not raw.endswith(b"\n"):
        raw += b"\n"
    codes = np.frombuffer(raw, dtype=np.uint8)
    ends = codes[(codes == _TAB) | (codes == _LINE)]
    if b"\r" in raw or ends.size % 4 or not (ends.reshape(-1, 4) == _ROW_ENDS).all():
        return []
    try:
        cells = raw.decode("utf-8").replace("\n", "\t").split("\t")
    except UnicodeDecodeError:
        return []
    ids, sources = cells[:-1:4], cells[1::4]
    if "" in ids or "" in sources:
        return []
    quadruples = zip(ids, sources, cells[2::4], cells[3::4], strict=True)
    return [tuple.__new__(Row, row) for row in quadruples]  # twice as fast as Row(…)


def _parse(raw: bytes, number: int, path: Path) -> Row:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    fields = text.removesuffix("\n").removesuffix("\r").split("\t")
    if len(fields) != 4:
        raise InputError(
            f"{path}, line {number}: {len(fields)} tab-separated columns where 4 are expected"
            f" ({COLUMNS}; no header)"
        )
    if not fields[0] or not fields[1]:
        missing = "id" if not fields[0] else "source"
        raise InputError(f"{path}, line {number}: the {missing} is empty; every row needs one")
    return Row(*fields)


def chunks(
    rows: Iterable[tuple[str, str, str, str]], size: int = CHUNK_ROWS
) -> Iterator[list[Row]]:
    """Yield the rows in lists of at most `size`."""
    iterator = iter(rows)
    while block := [Row._make(row) for row in islice(iterator, size)]:
        yield block


def columns_of(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    """Return ids, sources, targets and predictions of one or more rows."""
    ids, sources, targets, predictions = zip(*rows, strict=True)
    return ids, sources, targets, predictions


class SeenIds:
    """Hashes of ids, 8 bytes each, that show which ids may be duplicates.

    Different ids can have the same hash, so `check_distinct` reads the rows before it reports one.
    """

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.int64]] = []

    def add(self, hashes: NDArray[np.int64]) -> None:
        """Add the hashes of the next rows' ids."""
        self._hashes.append(hashes)

    def suspects(self) -> frozenset[int]:
        """Return the hashes that were added more than once."""
        if not self._hashes:
            return frozenset()
        together = np.sort(np.concatenate(self._hashes))
        return frozenset(together[1:][together[1:] == together[:-1]].tolist())


def hashes_of(block: Sequence[Row]) -> NDArray[np.int64]:
    """Return a hash of every row's id, which is valid in this process only."""
    return np.array([hash(row.id) for row in block], dtype=np.int64)


def check_distinct(again: Callable[[], Iterable[list[Row]]], where: str) -> None:
    """Raise InputError if two rows have the same id; `again` returns the blocks of rows anew."""
    seen = SeenIds()
    for block in again():
        seen.add(hashes_of(block))
    suspects = seen.suspects()
    lines: dict[str, int] = {}
    for number, row in enumerate(chain.from_iterable(again()), start=1):
        if hash(row.id) not in suspects:
            continue
        if row.id in lines:
            raise InputError(
                f"{where}, line {number}: id {row.id!r} is already that of line {lines[row.id]};"
                " give every sentence its own id"
            )
        lines[row.id] = number
