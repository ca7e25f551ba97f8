"""The benchmarks that a corpus is compared with, and the sentences of them that it has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, UsageError
from cecdata.contamination.index import CONTAMINATED, EXACT, NEAR, OVERLAP, Flags, Index
from cecdata.contamination.texts import texts
from cecdata.corpus.formats import FORMATS
from cecdata.corpus.normalise import Normalised, reject

ENVIRONMENT = "CECBENCH_DATA"
REASON = "contaminated"
_READABLE = tuple(suffix for form in FORMATS.values() for suffix in form.suffixes)


def benchmark_files(names: Sequence[str]) -> dict[str, Path]:
    """Return benchmark files by name; the name of a file in a folder begins with the folder's.

    Without `names`, they are those of the folders in $CECBENCH_DATA. Raises UsageError if that is
    not set either, and InputError for a missing path or a folder without readable files.
    """
    given = list(names) or [n for n in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if n]
    if not given:
        raise UsageError(f"no benchmark: name files or folders, or set ${ENVIRONMENT} to a folder")
    files: dict[str, Path] = {}
    for name in given:
        path = Path(name)
        if path.is_dir() and not (path / "data").is_dir():
            below = sorted(p for p in path.rglob("*") if p.suffix in _READABLE and p.is_file())
            if not below:
                raise InputError(f"{name}: no file there ends in one of {', '.join(_READABLE)}")
            files |= {f"{path.name}/{p.relative_to(path).as_posix()}": p for p in below}
        elif path.exists():
            files[name] = path
        else:
            raise InputError(f"{name}: there is no such file or folder")
    return files


def load(names: Sequence[str]) -> Index:
    """Return the index of the benchmarks in these files and folders."""
    files = benchmark_files(names)
    return _loaded(tuple((name, path, sha256_of(path).sha256) for name, path in files.items()))


def benchmarks(names: Sequence[str]) -> Index | None:
    """Return the benchmarks that a configuration's `decontaminate` names, or None."""
    return load(names) if names else None


def digests(names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each benchmark file by name; an empty dict without `names`."""
    if not names:
        return {}
    return {name: sha256_of(path).sha256 for name, path in benchmark_files(names).items()}


@lru_cache(maxsize=1)
def _loaded(files: tuple[tuple[str, Path, str], ...]) -> Index:
    return Index(
        (name, (text for text, _, _ in texts(str(path)) if len(text))) for name, path, _ in files
    )


def decontaminate(
    clean: Normalised, benchmarks: Index, *, kinds: int = CONTAMINATED
) -> Normalised:
    """Reject the sentences that a benchmark has, with the reason `contaminated`.

    `kinds` are the flags of `Index.find` that count.
    """
    flags = benchmarks.find(clean.batch.column("text")) & np.uint8(kinds)
    bad = flags.any(axis=1)
    if not bad.any():
        return clean
    details = [_detail(row, benchmarks.benchmarks) for row in flags[bad]]
    rejected = reject(clean.batch.filter(pa.array(bad)), REASON, details)
    merged = pa.concat_batches([clean.rejected, rejected])
    return Normalised(clean.batch.filter(pa.array(~bad)), merged)


def by_benchmark(rejected: pa.Table) -> dict[str, int]:
    """Count contaminated rows by `detail`, which has the benchmark and the kind of match."""
    bad = rejected.filter(pc.equal(rejected.column("reason"), REASON))
    return {
        part["values"]: part["counts"] for part in bad.column("detail").value_counts().to_pylist()
    }


def _detail(flags: Flags, names: Sequence[str]) -> str:
    """Return the name of the first benchmark that a row matches, and how."""
    first = int(np.flatnonzero(flags)[0])
    named = ((EXACT, "the same text"), (OVERLAP, "a text inside the other"), (NEAR, "nearly it"))
    what = next((what for flag, what in named if flags[first] & flag), "a stretch of it")
    return f"{names[first]} has {what}"
