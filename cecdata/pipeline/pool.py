"""The first pass: the corpus as chunks of clean, distinct sentences, and what calibration needs."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.cores import usable_cores
from cecdata.common.durable import Entry, FileRecord, Workspace
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError, RefusedError
from cecdata.config import Config
from cecdata.contamination.lists import by_benchmark
from cecdata.corpus.inputs import InputFile, inputs
from cecdata.corpus.reading import FileReport, empty_corpus
from cecdata.corpus.rows import by_reason
from cecdata.corpus.sources import STDIN
from cecdata.filters import active
from cecdata.perturbation.engine import Histogram
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.stages import ahead
from cecdata.shards.schema import POOLED, REJECTED_ROW
from cecdata.shards.writer import check_whole, write_pairs

_FOLDER = ".cecdata/pool"
_REJECTS = ".cecdata/rejects"


@dataclass(frozen=True, slots=True)
class Survey:
    """The counts of a first pass."""

    rows: int  # of the corpus
    sentences: int
    rejected: dict[str, int]  # rows of the corpus by reason
    files: tuple[FileReport, ...]  # in reading order; a file beyond `limit` has none
    histogram: Histogram
    contaminated: dict[str, int] = field(default_factory=dict)  # rows by the benchmark's match


@dataclass(frozen=True, slots=True)
class Pool:
    """Chunks of `shard_sentences` sentences (the last may hold fewer), in the corpus's order."""

    survey: Survey
    chunks: tuple[Path, ...]
    rejects: tuple[tuple[FileRecord, int], ...]  # files of rejected rows, with their rows


def survey(corpus: Sequence[str], config: Config, progress: Progress) -> Survey:
    """Run the first pass and write nothing."""
    active(config)  # an unknown filter is refused before the corpus is read
    intake = Intake(corpus, config, progress, usable_cores())
    return _scan(intake, intake.chunks())


def fill(work: Workspace, intake: Intake, given: Sequence[InputFile]) -> Pool:
    """Write the corpus's sentences into the pool, or return the existing pool.

    `given` are the corpus's files as recorded in the fingerprint. Raises InputError if one of them
    changed while it was read, and RefusedError if standard input gives another text than before.
    """
    done = work.journal.done("pool", "all", verify=True)
    if STDIN in intake.corpus:
        _refuse_other_text(work, done, intake)
    if done is None:
        done = _write(work, intake, given)
    return of_entry(done, intake.config)


def of_entry(done: Entry, config: Config) -> Pool:
    """Return the pool that an entry of the journal names; its chunks may be elsewhere."""
    facts: dict[str, Any] = dict(done.facts)
    paths = [file.path for file in done.files]
    chunks = tuple(path for path in paths if path.suffix == ".arrow")
    counts = next(path for path in paths if path.suffix == ".npy")
    rejects = [file for file in done.files if file.path.suffix == ".parquet"]
    counted = Survey(
        rows=facts["rows"],
        sentences=facts["sentences"],
        rejected=dict(facts["rejected"]),
        files=tuple(
            FileReport(path, rows, Counter(bad), damage)
            for path, rows, bad, damage in facts["inputs"]
        ),
        histogram=_read_counts(counts, config),
        contaminated=dict(facts["contaminated"]),
    )
    return Pool(counted, chunks, tuple(zip(rejects, facts["rejects_rows"], strict=True)))


def read_chunk(path: Path) -> pa.RecordBatch:
    """Read a chunk (schema POOLED); the file is not mapped, so only data in use takes memory."""
    with naming(path), pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


def drop(work: Workspace) -> None:
    """Remove the pool: a finished dataset does not need it, and a repair makes it again."""
    shutil.rmtree(work.root / _FOLDER, ignore_errors=True)


Chunk = tuple[pa.RecordBatch, pa.Table]  # sentences, and the rows rejected on the way


class _Files:
    """The pool's files as they are written."""

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.written: list[FileRecord] = []
        self.rejects_rows: list[int] = []

    def written_chunks(self, intake: Intake) -> Iterator[Chunk]:
        """Yield the chunks of a corpus as they are written, in order, by the intake's threads."""
        for chunk, bad, files in ahead(self._write, enumerate(intake.chunks()), intake.workers):
            self.written += files
            self.rejects_rows += [len(bad)] if len(bad) else []
            yield chunk, bad

    def _write(
        self, numbered: tuple[int, Chunk]
    ) -> tuple[pa.RecordBatch, pa.Table, list[FileRecord]]:
        number, (chunk, bad) = numbered
        files = []
        if len(chunk):
            files.append(_write_chunk(self.work, f"{_FOLDER}/{number:05d}.arrow", chunk))
        if len(bad):
            files.append(write_rejects(self.work, f"{_REJECTS}/rows-{number:05d}.parquet", bad))
        return chunk, bad, files


def _scan(intake: Intake, chunks: Iterator[Chunk]) -> Survey:
    """Read the corpus to its end and count it."""
    histogram = Histogram.of(intake.config)
    rejected: Counter[str] = Counter()
    contaminated: Counter[str] = Counter()
    sentences = 0
    for chunk, bad in chunks:
        histogram.add(chunk.column("text"))
        rejected.update(by_reason(bad))
        contaminated.update(by_benchmark(bad))
        sentences += len(chunk)
    if not sentences:
        raise empty_corpus(intake.corpus, rejected)
    rows = sentences + rejected.total()
    by_name = dict(sorted(rejected.items()))
    known = dict(sorted(contaminated.items()))
    return Survey(rows, sentences, by_name, tuple(intake.files), histogram, known)


def _write(work: Workspace, intake: Intake, given: Sequence[InputFile]) -> Entry:
    """Read the corpus into the pool, and record it in the journal."""
    # Rejected rows of an interrupted run, perhaps of another text, must not be published.
    for path in (work.root / _REJECTS).glob("rows-*"):
        path.unlink()
    files = _Files(work)
    counted = _scan(intake, files.written_chunks(intake))
    refuse_changed(intake, given)
    files.written.append(_write_counts(work, counted.histogram.counts))
    return work.journal.record(
        "pool",
        "all",
        files.written,
        rows=counted.rows,
        sentences=counted.sentences,
        rejected=counted.rejected,
        contaminated=counted.contaminated,
        inputs=[[f.path, f.rows, dict(f.rejected), f.damage] for f in counted.files],
        rejects_rows=files.rejects_rows,
    )


def _refuse_other_text(work: Workspace, done: Entry | None, intake: Intake) -> None:
    """Raise RefusedError unless standard input gives the sentences that the build began with.

    A file is known by its SHA-256 beforehand; a pipe is known only once it has been read.
    """
    if done is None:
        same = all(entry.step != "chunk" for entry in work.journal)  # no chunk was made yet
    else:
        pool = [file.path for file in done.files if file.path.suffix == ".arrow"]
        chunks = (chunk for chunk, _ in intake.chunks() if len(chunk))
        pairs = zip_longest(pool, chunks)
        same = all(path and chunk and chunk.equals(read_chunk(path)) for path, chunk in pairs)
    if not same:
        raise RefusedError(
            f"{work.root} was begun with another text from standard input: pipe the same text "
            "again, choose another folder, or --overwrite what is there"
        )


def refuse_changed(intake: Intake, given: Sequence[InputFile]) -> None:
    """Raise InputError unless the files are still those of the fingerprint and the manifest.

    A file that is still being written or downloaded would give rows that its recorded SHA-256 does
    not cover.
    """
    now = inputs(intake.corpus, intake.config.format)
    if list(given) != now:
        names = {file.path for file in {*given} ^ {*now}}
        raise InputError(
            f"{', '.join(sorted(names)) or 'the corpus'} changed while it was read: wait until it "
            "is complete, and run the same command again"
        )


def _write_chunk(work: Workspace, name: str, chunk: pa.RecordBatch) -> FileRecord:
    def write(path: Path) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, POOLED, options=options) as writer,
        ):
            writer.write_batch(chunk)

    def check(path: Path) -> None:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            assert reader.num_record_batches == 1

    return work.write(name, write, check)


def write_rejects(work: Workspace, name: str, bad: pa.Table) -> FileRecord:
    """Write rejected rows (schema REJECTED_ROW) as a Parquet file."""

    def write(path: Path) -> None:
        write_pairs(path, [bad], REJECTED_ROW)

    return work.write(name, write, lambda path: check_whole(path, len(bad), REJECTED_ROW))


def _write_counts(work: Workspace, counts: npt.NDArray[np.int64]) -> FileRecord:
    """Write the nonzero cells as two rows: the index in the flat histogram, and the count."""
    where = np.flatnonzero(counts)
    data = io.BytesIO()  # numpy hides why its own writing to a file failed
    np.save(data, np.stack([where, counts.ravel()[where]]), allow_pickle=False)
    return work.write_bytes(f"{_FOLDER}/places.npy", data.getvalue())


def _read_counts(path: Path, config: Config) -> Histogram:
    histogram = Histogram.of(config)
    with naming(path):
        where, count = np.load(path, allow_pickle=False)
    histogram.counts.ravel()[where] = count
    return histogram
