"""The shapes of a benchmark: its rows, its files, its entry in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence to correct and how it should read; equal texts are a clean sentence."""

    id: str
    source: str
    reference: str


@dataclass(frozen=True, slots=True)
class File:
    """A published file: its place under a data folder, where it comes from, and its digest.

    `sha256` is None where nobody has published one; the first download's is then recorded
    beside the file, so that a later change shows.
    """

    path: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """One published form of a benchmark: its files, and the reader that understands them."""

    files: tuple[File, ...]
    reader: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """An entry of the catalogue; `copies` are tried in order, the first one found is read."""

    name: str
    title: str
    rows: int | None  # as published; None: not stated
    licence: str
    restricted: bool  # the licence must be accepted before a download
    citation: str
    homepage: str
    copies: tuple[Copy, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A benchmark that was found and read."""

    name: str
    rows: tuple[Row, ...]
    sha256: str  # of the bytes of its files, one after the other
    paths: tuple[Path, ...]
    licence: str = "not stated"
    synthetic: bool = False
    notes: tuple[str, ...] = ()
