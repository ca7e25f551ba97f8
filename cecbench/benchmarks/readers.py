"""Readers of benchmark files. Each raises InputError with the number of a bad line or record.

`prefix` begins the ids of rows without one. `read_texts` yields of each row its number, its place
for messages, and its texts by the names of the columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cecdata.common.errors import InputError
from cecdata.corpus.pairs import PAIRS, read_lines, read_texts


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence to correct and its correction; the two are equal for a clean sentence."""

    id: str
    source: str
    target: str


Reader = Callable[[tuple[Path, ...], str], Iterator[Example]]

_PAIR = ("source", "target")
_WIDTHS = {**PAIRS, 4: ("id", "source", "target", "prediction")}
_TRUTH_ID = re.compile(r"^\((?:p?id|NID)=(?P<id>[^)]+)\)(?:[ \t]+|\s*)(?P<text>.*)$", re.IGNORECASE)


def read_lemon(paths: tuple[Path, ...], prefix: str) -> Iterator[Example]:
    """Read LEMON's files: source TAB reference, with spaces between the characters of each.

    White space inside a text cannot be distinguished from these and is dropped, as LEMON's own
    script drops it.
    """
    for number, line in read_lines(paths[0]):
        cells = line.split("\t")
        if len(cells) != 2:
            raise _bad_line(paths[0], number, f"has {len(cells)} columns instead of 2")
        yield Example(f"{prefix}-{number}", "".join(cells[0].split()), "".join(cells[1].split()))


def read_table(paths: tuple[Path, ...], prefix: str) -> Iterator[Example]:
    """Read JSON, M2 or a table: source and target; id or label, source and target; or id, source,
    target and a prediction, which is not used.
    """
    for number, _, texts in read_texts(paths[0], _PAIR, _WIDTHS):
        name = texts.get("id") or f"{prefix}-{number}"
        yield Example(name, texts["source"], texts["target"])


def read_parallel(paths: tuple[Path, ...], prefix: str) -> Iterator[Example]:
    """Read two files line by line: the sentences with errors, then the correct ones."""
    sources, references = (list(read_lines(path, blank=True)) for path in paths)
    for texts in (sources, references):
        while texts and not texts[-1][1].strip():  # blank lines at the end belong to no row
            texts.pop()
    if len(sources) != len(references):
        raise InputError(
            f"{paths[0]} has {len(sources)} lines, but {paths[1]} has {len(references)}: "
            "each line of one file must belong to the same line of the other"
        )
    for (number, source), (_, reference) in zip(sources, references, strict=True):
        if bool(source.strip()) != bool(reference.strip()):
            blank, full = paths if reference.strip() else reversed(paths)
            raise InputError(f"line {number} is blank in {blank}, but not in {full}")
        if source.strip():
            yield Example(f"{prefix}-{number}", source, reference)


def read_sighan_truth(paths: tuple[Path, ...], _prefix: str) -> Iterator[Example]:
    """Read the SIGHAN release: `(pid=A2-0011-1)	text` and `A2-0011-1, 4, 轉, …`.

    Positions count from 1.
    """
    truths = {}
    for number, line in read_lines(paths[1]):
        name, *cells = (cell.strip() for cell in line.split(","))
        if cells == ["0"]:  # no error
            cells = []
        elif len(cells) % 2:
            raise _bad_line(paths[1], number, "is not `id, position, character, …`")
        truths[name] = number, cells
    for number, line in read_lines(paths[0]):
        match = _TRUTH_ID.match(line)
        if match is None or match["id"] not in truths:
            raise _bad_line(paths[0], number, f"must begin with (pid=ID), an ID of {paths[1].name}")
        name, text = match["id"], match["text"]
        yield Example(name, text, _correct_text(paths[1], text, truths[name]))


def read_parquet(paths: tuple[Path, ...], prefix: str) -> Iterator[Example]:
    """Read Parquet files with a source and a reference column, such as shards."""
    rows = chain.from_iterable(read_texts(path, _PAIR, {}) for path in paths)
    for number, (_, _, texts) in enumerate(rows, 1):
        yield Example(texts.get("id") or f"{prefix}-{number}", texts["source"], texts["target"])


def _correct_text(path: Path, text: str, truth: tuple[int, list[str]]) -> str:
    """Return a text corrected by `truth`: its line, and pairs of position (from 1), character."""
    number, cells = truth
    characters = list(text)
    for position, character in zip(cells[::2], cells[1::2], strict=True):
        sound = re.fullmatch("[0-9]{1,9}", position)
        if sound is None or not 0 < int(position) <= len(characters):
            raise _bad_line(
                path, number, f"has a position {position:.20} outside 1 to {len(characters)}"
            )
        characters[int(position) - 1] = character
    return "".join(characters)


def _bad_line(path: Path, number: int, what: str) -> InputError:
    return InputError(f"{path}, line {number} {what}")


READERS: dict[str, Reader] = {
    "lemon": read_lemon,
    "table": read_table,
    "parallel": read_parallel,
    "sighan_truth": read_sighan_truth,
    "parquet": read_parquet,
}
