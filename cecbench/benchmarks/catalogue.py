"""The published benchmarks, which catalogue.toml names with files, digests, licences and citations;
and the files of a benchmark on this machine, verified and read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from cecbench.benchmarks.readers import READERS, Example
from cecbench.signature import UNNAMED
from cecdata.common.codec import decode
from cecdata.common.durable import STATE
from cecdata.common.errors import (
    InputError,
    UsageError,
    VerificationError,
    did_you_mean,
    without_userinfo,
)
from cecdata.common.machine import find_user_folder
from cecdata.common.settings import read_recipe

ENVIRONMENT = "CECBENCH_DATA"
#: suffix of a user's own file → name of its reader in `readers.READERS`
READER_OF_SUFFIX = {
    **dict.fromkeys((".tsv", ".csv", ".txt", ".jsonl", ".ndjson", ".json"), "table"),
    ".parquet": "parquet",
    ".m2": "table",
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
def read_catalogue() -> dict[str, Benchmark]:
    """Return all benchmarks by name: those of the paper's table in its order, then the others."""
    catalogue: Any = read_recipe(str(Path(__file__).with_name("catalogue.toml")), "cecbench", ())
    families = catalogue["family"]
    entries = [{**families.get(e.get("family"), {}), **e} for e in catalogue["benchmark"]]
    return {entry["name"]: decode(Benchmark, entry, entry["name"]) for entry in entries}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A benchmark that was read from its files.

    signed: its name in signatures, the same for all files of a user's own, which only their
    rows' digest distinguishes.
    """

    name: str
    rows: tuple[Example, ...]
    sha256: str  # of the bytes of its files, one after the other
    licence: str = "not stated"
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    signed: str = ""


def sample_rows(rows: Sequence[Example], count: int) -> tuple[Example, ...]:
    """Return `count` rows in the benchmark's order; all of them where `count` is 0 or too large.

    A row's place in the draw depends on its id alone, so that a larger sample includes a smaller
    one. The head of a benchmark would be no sample: LEMON's files begin with all the errors.
    """
    if not 0 < count < len(rows):
        return tuple(rows)

    def draw(place: int) -> bytes:
        return hashlib.sha256(f"sample:{rows[place].id}".encode("utf-8", "surrogatepass")).digest()

    drawn = sorted(range(len(rows)), key=draw)[:count]
    return tuple(rows[place] for place in sorted(drawn))


def cache_folder() -> Path:
    """Return the last folder searched: `cecbench` in $XDG_CACHE_HOME or ~/.cache."""
    return find_user_folder("XDG_CACHE_HOME") / "cecbench"


def list_data_folders(data: Path | None) -> tuple[Path, ...]:
    """Return the folders that are searched, in order."""
    folders = [data] if data else []
    folders += [Path(part) for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    return (*folders, cache_folder())


def find_copy(benchmark: Benchmark, data: Path | None) -> tuple[Release, tuple[Path, ...]] | None:
    """Return the first copy whose files are all in one of the folders, and their paths."""
    for folder in list_data_folders(data):
        for copy in benchmark.releases:
            paths = tuple(folder / file.path for file in copy.files)
            if all(path.is_file() for path in paths):
                return copy, paths
    return None


def load_benchmark(name: str, data: Path | None = None) -> Dataset:
    """Read a benchmark: a name, a user's own file, or a folder of shards (its validation split).

    Raises UsageError for an unknown name, with the nearest one; InputError if it is missing, with
    the files to place and the folders for them, and if two rows have the same id; VerificationError
    if a file is not the published one.
    """
    path, table = Path(name), read_catalogue()
    if name not in table:
        if path.is_dir():
            return _read_shards(path)
        if path.is_file():
            return _read_own_file(path)
        raise UsageError(
            f"there is no benchmark or file {without_userinfo(name)!r}: "
            f"{did_you_mean(name, list(table))}; a file of your own must have one of the suffixes "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    benchmark = table[name]
    place = find_copy(benchmark, data)
    if place is None:
        raise InputError(_explain_where_to_place(benchmark, data))
    copy, paths = place
    notes = [note for note in (copy.note, benchmark.note) if note]
    for file, path in zip(copy.files, paths, strict=True):
        notes += _check_digest(path, file.sha256)
    rows = _check_rows(READERS[copy.reader](paths, name.rsplit("/", 1)[-1]), paths[0])
    if benchmark.rows is not None and len(rows) != benchmark.rows:
        notes.append(f"{len(rows)} rows were read, but the published file has {benchmark.rows}")
    return Dataset(name, rows, hash_files(paths), benchmark.licence, notes=tuple(notes))


def hash_files(paths: tuple[Path, ...]) -> str:
    """Return the SHA-256 (hex) of the files' bytes, one file after the other."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _read_own_file(path: Path) -> Dataset:
    reader = READER_OF_SUFFIX.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: unknown suffix. A benchmark file must have one of the suffixes "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    rows = _check_rows(READERS[reader]((path,), path.stem), path)
    notes = ("a file of the user's own",)
    return Dataset(path.stem, rows, hash_files((path,)), notes=notes, signed=UNNAMED)


def _read_shards(folder: Path) -> Dataset:
    """Return the validation split of a dataset as a benchmark of synthetic errors."""
    # Late: they bring in pyarrow, which the list of benchmarks does not need.
    from cecdata.shards.manifest import MANIFEST
    from cecdata.shards.reader import open_dataset

    if (folder / MANIFEST).exists() or (folder / STATE).exists():
        open_dataset(folder).prove("validation")  # raises where files differ from the manifest
    paths = tuple(sorted((folder / "data").glob("validation-*.parquet")))
    if not paths:
        raise InputError(
            f"{folder} has no data/validation-*.parquet: name a dataset that `cecdata build` wrote "
            "with --holdout above 0, or a file"
        )
    rows = _check_rows(READERS["parquet"](paths, "validation"), folder)
    licence = "see the dataset card of the shards"
    notes = ("synthetic errors: the score does not say how well people's errors are corrected",)
    name, digest = "synthetic-validation", hash_files(paths)
    return Dataset(name, rows, digest, licence, synthetic=True, notes=notes)


def _check_rows(rows: Iterator[Example], path: Path) -> tuple[Example, ...]:
    """Return all rows; raise InputError for an id that occurs twice, or an empty text."""
    seen: dict[str, Example] = {}
    for row in rows:
        if row.id in seen:
            raise InputError(f"{path}: the id {row.id!r} occurs twice: ids must be unique")
        if not (row.source and row.target):
            empty = "target" if row.source else "source"
            raise InputError(f"{path}: row {row.id!r} has an empty {empty}")
        seen[row.id] = row
    if not seen:
        raise InputError(f"{path} has no rows")
    return tuple(seen.values())


def _check_digest(path: Path, sha256: str | None) -> list[str]:
    """Return a note where no digest is published; raise VerificationError for another file."""
    read = hash_files((path,))
    if sha256 is None:
        return [f"{path.name} is unchecked: no published SHA-256; its own: {read[:8]}…"]
    if read != sha256:
        raise VerificationError(
            f"{path} is not the published file: sha256 {read[:16]}… instead of {sha256[:16]}…. "
            "Download it again, or name its path as --benchmark to score it as your own file"
        )
    return []


def _explain_where_to_place(benchmark: Benchmark, data: Path | None) -> str:
    """Return how to get the files of a benchmark, and the folders that are searched."""
    folders = [str(folder) for folder in list_data_folders(data)]
    forms = [" and ".join(file.path for file in copy.files) for copy in benchmark.releases]
    copy = next((c for c in benchmark.releases if all(file.url for file in c.files)), None)
    ways = [
        f"curl -L --create-dirs -o {quote(str(cache_folder() / file.path))} {file.url}"
        for file in (copy.files if copy else ())
    ]
    download = f"download it (`{'; '.join(ways)}`), or " if ways else ""
    return (
        f"{benchmark.name} is not in {', '.join(folders)}. If its licence ({benchmark.licence}) "
        f"allows your use, {download}place {' or '.join(forms)} under one of these folders (or "
        f"another, named with --data or ${ENVIRONMENT}). Homepage: {benchmark.homepage}"
    )
