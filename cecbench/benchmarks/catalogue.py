"""The published benchmarks: files, digests, licences, citations; catalogue.toml names them all."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cecdata.common.codec import decode
from cecdata.common.errors import UsageError, did_you_mean, without_userinfo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: suffix of a user's own file → name of its reader in `readers.READERS`
READER_OF_SUFFIX = {
    **dict.fromkeys((".tsv", ".csv", ".txt", ".jsonl", ".ndjson", ".json"), "table"),
    ".parquet": "parquet",
    ".m2": "m2",
}


@dataclass(frozen=True, slots=True)
class File:
    """A published file: its path below a data folder, its URL, its digest if one is published."""

    path: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A published form of a benchmark: its files, and the name of their reader in READERS."""

    files: tuple[File, ...]
    reader: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """An entry of the catalogue; of `releases` the first one whose files exist is read.

    rows: as published; None where that is not stated.
    """

    name: str
    title: str
    licence: str
    citation: str
    homepage: str
    releases: tuple[Release, ...]
    rows: int | None = None
    note: str = ""


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name: those of the paper's table in its order, then the others."""
    text = Path(__file__).with_name("catalogue.toml").read_text("utf-8")
    catalogue = tomllib.loads(text)
    families = catalogue["family"]
    entries = [{**families.get(e.get("family"), {}), **e} for e in catalogue["benchmark"]]
    return {entry["name"]: decode(Benchmark, entry, entry["name"]) for entry in entries}


def lookup(name: str) -> Benchmark:
    """Return the entry of a name; raise UsageError with the nearest name if there is none."""
    known = benchmarks()
    if name not in known:
        raise UsageError(
            f"no benchmark and no file is called {without_userinfo(name)!r}: "
            f"{did_you_mean(name, list(known))}; a file of your own may end in "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    return known[name]
