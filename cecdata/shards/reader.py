"""The reader of a finished dataset, whose folder must first pass the quick check.

That check compares the files on disk with those of the manifest (presence, size) without reading
them. It is also the first step of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.durable import sha256_of
from cecdata.common.errors import UsageError, VerificationError, did_you_mean
from cecdata.shards.manifest import File, Manifest, read_manifest
from cecdata.shards.schema import PAIR

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 5  # problems named in an error message
# Folders that may hold only files that the manifest names.
OWNED = ("data", "rejects")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset on disk whose files are those of its manifest."""

    path: Path
    manifest: Manifest
    _proven: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each shard by its path, as recorded in the manifest."""
        outputs = self.manifest.outputs.values()
        return {record.path: record.sha256 for files in outputs for record in files}

    def rows(self, split: str) -> int:
        """Return the number of pairs of a split."""
        return sum(record.rows for record in self._records(split))

    def _records(self, split: str) -> Sequence[File]:
        """Return the files of a split; raise UsageError if there is no such split."""
        outputs = self.manifest.outputs
        if split not in outputs:
            hint = did_you_mean(split, list(outputs))
            raise UsageError(f"{self.path} has no split {split!r}; {hint}")
        return outputs[split]

    def prove(self, split: str) -> None:
        """Raise VerificationError unless every shard of the split has the manifest's SHA-256.

        Each shard is hashed once, before its first row is returned: the checksum of a page covers
        neither its header nor the footer, where one wrong bit can give wrong rows.
        """
        for record in self._records(split):
            self._check_hash(record)

    def _check_hash(self, record: File) -> None:
        """Raise VerificationError unless a shard has the SHA-256 that the manifest says."""
        if record.path in self._proven:
            return
        digest = sha256_of(self.path / record.path).sha256
        if digest != record.sha256:
            raise VerificationError(
                f"{self.path / record.path}: damaged (its SHA-256 is {digest[:16]}…, the manifest "
                f"says {record.sha256[:16]}…): run the same `cecdata build` again"
            )
        self._proven.add(record.path)

    def scan(self, split: str) -> pl.LazyFrame:
        """Return all pairs of a split as a lazy Polars frame; its shards are hashed first."""
        import polars as pl

        empty = pl.LazyFrame(pl.from_arrow(PAIR.empty_table()))
        return pl.concat([empty, *self.scan_shards(split)])

    def scan_shards(self, split: str) -> Iterator[pl.LazyFrame]:
        """Yield each shard of a split as a lazy frame, when it has been hashed."""
        import polars as pl

        for record in self._records(split):
            self._check_hash(record)
            yield pl.scan_parquet(self.path / record.path, glob=False)

    def batches(
        self, split: str, columns: Sequence[str] | None = None, rows: int = 65_536
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of a split, at most `rows` at a time; each shard is hashed first.

        Raises UsageError for an unknown split, and VerificationError with the file's name where a
        checksum does not match.
        """
        for record in self._records(split):
            self._check_hash(record)
            yield from read_batches(self.path / record.path, columns, rows)


def open_dataset(path: str | Path, *kinds: str) -> Dataset:
    """Return the dataset at `path`, after a comparison of its files with its manifest.

    It must be one of `kinds`, by default of pairs. Raises InputError if the folder is no dataset,
    and VerificationError if it is unfinished or damaged. Contents are not hashed here: a shard is
    hashed before its first row is read.
    """
    # Arrow and Polars take some relative names ("s3:x", "~") for an address or a home.
    out = Path(path).absolute()
    manifest = read_manifest(out, *kinds)
    problems = take_inventory(out, manifest)
    if problems:
        listed = "\n  ".join(str(problem) for problem in problems[:_SHOWN])
        more = f"\n  … and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise VerificationError(
            f"{out}: its files differ from its manifest:\n  {listed}{more}\nRun the same `cecdata "
            "build` again: it replaces damaged files."
        )
    return Dataset(out, manifest)


def read_batches(
    path: Path, columns: Sequence[str] | None = None, rows: int = 65_536
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one Parquet file; raise VerificationError if it is damaged."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = list(columns) if columns else list(PAIR.names)
            for batch in file.iter_batches(batch_size=rows, columns=names):
                yield _check_columns(path, batch, names).select(names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # a name that is not UTF-8
        raise VerificationError(f"{path}: damaged ({error}); run `cecdata verify`") from error


def _check_columns(path: Path, batch: pa.RecordBatch, wanted: list[str]) -> pa.RecordBatch:
    """Return a batch; raise VerificationError where it lacks a column, or a value that it needs."""
    for name in wanted:
        at = batch.schema.get_field_index(name)
        needed = name in PAIR.names and not PAIR.field(name).nullable
        if at < 0 or (needed and batch.column(at).null_count):
            raise VerificationError(
                f"{path}: column {name!r}, or a value in it, is missing; run `cecdata verify`"
            )
    return batch


@dataclass(frozen=True, slots=True)
class Problem:
    """A difference from the manifest; `path` is relative to the dataset."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def take_inventory(out: Path, manifest: Manifest) -> tuple[Problem, ...]:
    """Return every missing, resized or foreign file, in the order of the manifest."""
    records = manifest.files()
    problems = [Problem(record.path, _find_misfit(out / record.path, record)) for record in records]
    paths = {record.path for record in records}
    for folder in OWNED:
        below = (path for path in (out / folder).rglob("*") if path.is_symlink() or path.is_file())
        names = sorted(path.relative_to(out).as_posix() for path in below)
        problems += (Problem(name, "is not in the manifest") for name in names if name not in paths)
    return tuple(problem for problem in problems if problem.what)


def _find_misfit(path: Path, record: File) -> str:
    try:
        size = path.stat().st_size
    except OSError as error:
        return "is missing" if isinstance(error, FileNotFoundError) else f"{error.strerror}"
    if not path.is_file():
        return "is not a file"
    return "" if size == record.bytes else f"has {size:,} bytes instead of {record.bytes:,}"
