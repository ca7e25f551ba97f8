"""The benchmarks that a corpus is compared with, and the sentences of them that it has.

Files of all formats are read row by row: cells, strings of JSON, both sides of pairs.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, UsageError
from cecdata.common.progress import advance_bar, say
from cecdata.contamination.index import CONTAMINATED, EXACT, OVERLAP, SHARED, SHORTEST, Flags, Index
from cecdata.corpus.formats import FORMATS
from cecdata.corpus.formats.delimited import HAS_SENTENCE
from cecdata.corpus.inputs import find_sources, list_files_below, parse_suffixes
from cecdata.corpus.lines import BLOCK_BYTES
from cecdata.corpus.normalise import Normalised, reject_rows
from cecdata.corpus.pairs import NAMES
from cecdata.corpus.sources import Reject, Source
from cecdata.shards.manifest import MANIFEST
from cecdata.shards.schema import count_values

ENVIRONMENT = "CECBENCH_DATA"
REASON = "contaminated"
_ROWS = 16_384
_IS_DAMAGED = re.compile("[\ud800-\udfff]").search  # bytes that are not UTF-8, or half a pair

# Fields that name or label a row: in these, equal values mean nothing.
_NOT_TEXT = frozenset(
    (
        *("id", "sid", "pid", "index", "copy", "origin", "operator", "edits", "file", "row", "url"),
        *("link", "licence", "license", "domain", "category", "type", "kind", "label", "labels"),
        *("reason", "lang", "language", "split", "date", "time", "author", "role", "from"),
    )
)

_KNOWN = _NOT_TEXT.union(*NAMES.values())  # names of columns

_loading = threading.Lock()  # so that several threads do not make one index each

# Texts, the row of each, and the number of rows of which these are texts.
Texts: TypeAlias = "tuple[pa.Array, npt.NDArray[np.int64], int]"


def find_benchmark_files(names: Sequence[str]) -> dict[str, Path]:
    """Return benchmark files by name; the name of a file in a folder begins with the folder's.

    Of several files that would have one name, the later ones have a number; no name is a path.
    Without `names`, they are those of the folders in $CECBENCH_DATA. Raises UsageError if that is
    not set either, and InputError for what is no file and for a folder without any.
    """
    entries = list(names) or [n for n in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if n]
    if not entries:
        raise UsageError(
            f"no benchmark was named: name files or folders, or set ${ENVIRONMENT} to a folder"
        )
    paths_by_name: list[tuple[str, Path]] = []
    for name in entries:
        path = Path(name)
        prefix, paths = Path(path.absolute().name), [path]
        if path.is_dir() and not _is_dataset(path):
            paths = [file for file in list_files_below(path) if file.stat().st_size]
        if not paths:
            raise InputError(f"{name}: no file with text is in this folder")
        for file in paths:
            if not (file.is_file() or _is_dataset(file)):  # a pipe cannot be read twice
                raise InputError(f"{file}: there is no such file or folder")
            paths_by_name.append(((prefix / file.relative_to(path)).as_posix(), file))
    files: dict[str, Path] = {}
    for name, path in paths_by_name:
        free, number = name, 1
        while files.get(free, path) != path:
            number += 1
            free = f"{name} ({number})"
        files[free] = path
    return files


def _is_dataset(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and (folder / "data").is_dir()


def load_index(names: Sequence[str]) -> Index:
    """Return the index of the benchmarks in these files and folders.

    Raises InputError for a benchmark without a text that could be compared.
    """
    files = find_benchmark_files(names)
    with _loading:
        return _build_index(tuple((name, path, _hash_file(path)) for name, path in files.items()))


def hash_benchmarks(names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each benchmark file by name."""
    return {name: _hash_file(path) for name, path in find_benchmark_files(names).items()}


def _hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, or of the manifest in the folder of a dataset."""
    return sha256_of(path / MANIFEST if path.is_dir() else path).sha256


@lru_cache(maxsize=1)
def _build_index(files: tuple[tuple[str, Path, str], ...]) -> Index:
    """Return the index of benchmarks, given as (name, path, SHA-256)."""
    index = Index(
        (name, (text for text, _, _ in read_row_texts(str(path)) if len(text)))
        for name, path, _ in files
    )
    for name, path, _ in files:
        if not index.sizes[name]:
            raise _explain_missing_text(str(path))
    return index


def _explain_missing_text(name: str) -> InputError:
    return InputError(
        f"{name}: no text to compare. Texts are lines, strings of columns and of JSON, of at least "
        f"{SHORTEST} letters, digits or Han characters; no texts are bytes, numbers, and columns "
        f"named {', '.join(sorted(_NOT_TEXT))}. Rename the column, or name other files"
    )


def decontaminate(clean: Normalised, benchmarks: Index, *, kinds: int = CONTAMINATED) -> Normalised:
    """Reject the sentences that a benchmark has, with the reason `contaminated`.

    `kinds` are the flags of `Index.find` that count.
    """
    flags = benchmarks.find(clean.batch.column("text")) & np.uint8(kinds)
    bad = flags.any(axis=1)
    if not bad.any():
        return clean
    details = [_describe_match(row, benchmarks.benchmarks) for row in flags[bad]]
    rejected = reject_rows(clean.batch.filter(pa.array(bad)), REASON, details)
    merged = pa.concat_batches([clean.rejected, rejected])
    return Normalised(clean.batch.filter(pa.array(~bad)), merged)


def count_by_benchmark(rejected: pa.Table) -> dict[str, int]:
    """Count contaminated rows by `detail`, which has the benchmark and the kind of match."""
    bad = rejected.filter(pc.equal(rejected.column("reason"), REASON))
    return count_values(bad["detail"])


def _describe_match(flags: Flags, names: Sequence[str]) -> str:
    """Return the name of the first benchmark that a row matches, and how."""
    first = int(np.flatnonzero(flags)[0])
    named = ((EXACT, "the same text"), (OVERLAP, "a text that contains it or is part of it"))
    what = next((what for flag, what in named if flags[first] & flag), "a stretch of it")
    return f"{names[first]} has {what}"


@dataclass(slots=True)
class Hits:
    """Counts of a corpus's rows in one benchmark; each counts once, as exact or overlap."""

    name: str
    texts: int  # distinct ones in the benchmark; both sides of a pair count
    hits: int = 0
    exact: int = 0
    overlap: int = 0
    shared: int = 0  # further rows with 13 characters in common, perhaps a name or a formula


@dataclass(slots=True)
class Report:
    """The number of a corpus's rows, of those in any benchmark, and the hits of each benchmark."""

    rows: int
    hits: int
    benchmarks: list[Hits]


def count_hits(corpus: str, benchmarks: Index) -> Report:
    """Count the rows of a corpus that benchmarks have, and read it once.

    The corpus may be clean text or pairs in any format; a row counts if one of its texts does.
    Raises InputError for a file that cannot be read, and for a corpus without text.
    """
    names = benchmarks.benchmarks
    report = Report(0, 0, [Hits(name, benchmarks.sizes[name]) for name in names])
    longest = 0
    for text, rows, count in read_row_texts(corpus):
        longest = max(longest, pc.max(pc.utf8_length(text)).as_py() or 0)
        flags = benchmarks.find(text)
        distinct, row_of_text = np.unique(rows, return_inverse=True)
        by_row = np.zeros((len(distinct), len(names)), np.uint8)
        np.bitwise_or.at(by_row, row_of_text, flags)
        report.hits += int((by_row & CONTAMINATED).any(axis=1).sum())
        report.rows += count
        advance_bar("compare", count, None)
        for number, hits in enumerate(report.benchmarks):
            _add_hits(hits, by_row[:, number])
    if longest < SHORTEST:
        raise _explain_missing_text(corpus)
    return report


def _add_hits(hits: Hits, flags: Flags) -> None:
    """Add rows to the counts of a benchmark; `flags` says how each row matches it."""
    exact = (flags & EXACT) != 0
    overlap = ~exact & ((flags & OVERLAP) != 0)
    counted = exact | overlap
    hits.exact += int(exact.sum())
    hits.overlap += int(overlap.sum())
    hits.hits += int(counted.sum())
    hits.shared += int((~counted & ((flags & SHARED) != 0)).sum())


def read_row_texts(name: str) -> Iterator[Texts]:
    """Yield the texts of a file, a glob or a dataset folder, all texts of a row in one batch.

    Rows are numbered from 0 in each batch. A row is a line (with its fields between tabs), a row of
    a table, or a JSON object or element. Fields such as `id` and `origin` are left out. A file with
    another suffix, such as .test, is read as lines. Raises InputError for one that cannot be read.
    """
    is_other = Path(name).is_file() and not parse_suffixes(Path(name))[0]
    for source in find_sources([name], "text" if is_other else None):
        yield from _batch_row_texts(replace(source, guessed=True))


def _batch_row_texts(source: Source) -> Iterator[Texts]:
    """Yield the texts of the rows of a file, some megabytes at a time."""
    waiting: list[list[str]] = []
    lost: Counter[str] = Counter()
    size = 0  # characters
    labels: set[int] = set()  # columns of a table
    for number, record in enumerate(FORMATS[source.format].records(source)):
        if isinstance(record, Reject):
            lost[record.reason] += 1
        elif number == 0 and (names := _read_heading(record.value)):
            labels = {at for at, name in enumerate(names) if name in _NOT_TEXT}
        else:
            waiting.append(list(_find_strings(record.value, labels)))
            size += sum(map(len, waiting[-1]))
            if any(map(_IS_DAMAGED, waiting[-1])):
                lost["invalid_utf8"] += 1
        if len(waiting) == _ROWS or size >= BLOCK_BYTES:
            yield _to_columns(waiting)
            waiting, size = [], 0
    if waiting:
        yield _to_columns(waiting)
    if reason := next(iter(lost), ""):
        say(f"Warning: {source.label}: rows not read completely: {lost.total():,} ({reason})")


def _to_columns(rows: list[list[str]]) -> Texts:
    """Return the texts of rows in one column, the number of the row of each, and that of rows."""
    counts = [len(row) for row in rows]
    # a lone surrogate is in no benchmark
    sound = [text.encode("utf-8", "replace").decode() for row in rows for text in row]
    text = pa.array(sound, pa.string())
    return text, np.repeat(np.arange(len(rows)), counts), len(rows)


def _read_heading(value: object) -> list[str]:
    """Return the names of columns that a row of a table has; an empty list where it has none."""
    names = [str(cell).strip().lower() for cell in value] if isinstance(value, list) else []
    is_heading = _KNOWN.intersection(names) and not any(map(HAS_SENTENCE, names))
    return names if is_heading else []


def _find_strings(value: object, labels: Collection[int] = ()) -> Iterator[str]:
    """Yield the texts in a value of JSON, without those of fields, or columns, that are no text."""
    if isinstance(value, str):
        yield from value.split("\t")
    elif isinstance(value, dict):
        for name, part in value.items():
            if str(name).lower() not in _NOT_TEXT:
                yield from _find_strings(part)
    elif isinstance(value, list):
        for at, part in enumerate(value):
            if at not in labels:
                yield from _find_strings(part)
