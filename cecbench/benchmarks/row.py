"""Rows of a benchmark, its files, its entry in the catalogue; drawing a sample of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence to correct and its correction; the two are equal for a clean sentence."""

    id: str
    source: str
    reference: str


@dataclass(frozen=True, slots=True)
class File:
    """A published file: its path below a data folder, its URL and its digest.

    sha256: None where none is published. The digest of the first download is then recorded in the
    cache, so that a later change is noticed.
    """

    path: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A published form of a benchmark: its files, and the name of their reader in READERS."""

    files: tuple[File, ...]
    reader: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """An entry of the catalogue; of `copies` the first one whose files exist is read."""

    name: str
    title: str
    rows: int | None  # as published; None where that is not stated
    licence: str
    restricted: bool  # the licence must be accepted before a download
    citation: str
    homepage: str
    copies: tuple[Copy, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A benchmark that was read from its files."""

    name: str
    rows: tuple[Row, ...]
    sha256: str  # of the bytes of its files, one after the other
    licence: str = "not stated"
    synthetic: bool = False
    notes: tuple[str, ...] = ()


def sample(rows: Sequence[Row], count: int) -> tuple[Row, ...]:
    """Return `count` rows in the benchmark's order; all of them where `count` is 0 or too large.

    A row's place in the draw depends on its id alone, so that a larger sample includes a smaller
    one. The head of a benchmark would be no sample: LEMON's files begin with all the errors.
    """
    if not 0 < count < len(rows):
        return tuple(rows)

    def draw(place: int) -> bytes:
        return hashlib.sha256(f"sample:{rows[place].id}".encode("utf-8", "surrogatepass")).digest()

    return tuple(rows[place] for place in sorted(sorted(range(len(rows)), key=draw)[:count]))
