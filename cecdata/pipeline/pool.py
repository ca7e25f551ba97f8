"""The first pass: the corpus as chunks of clean, distinct sentences, and what calibration needs."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.durable import Entry, FileRecord, Workspace
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError, RefusedError
from cecdata.config import Config
from cecdata.corpus.reading import empty_corpus
from cecdata.corpus.sources import STDIN, InputFile, inputs
from cecdata.filters import active
from cecdata.perturbation.engine import Histogram
from cecdata.pipeline.intake import Batches, Progress, batches_of, by_reason, chunked
from cecdata.shards.schema import REJECTED_ROW, SENTENCE
from cecdata.shards.writer import check_whole, write_pairs

_FOLDER = ".cecdata/pool"
_REJECTS = ".cecdata/rejects"


@dataclass(frozen=True, slots=True)
class Pool:
    """Chunks of `shard_sentences` sentences (the last may hold fewer), in the corpus's order."""

    chunks: tuple[Path, ...]
    rows: int  # of the corpus
    sentences: int
    rejected: dict[str, int]  # rows of the corpus by reason
    rejects: tuple[tuple[FileRecord, int], ...]  # files of rejected rows, with their rows
    histogram: Histogram


def read_chunk(path: Path) -> pa.RecordBatch:
    """A chunk, schema SENTENCE; read, not mapped, so that memory stays what is in use."""
    with naming(path), pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0)


def fill(
    work: Workspace,
    corpus: Sequence[str],
    given: Sequence[InputFile],
    config: Config,
    progress: Progress,
    begun: Batches | None = None,
) -> Pool:
    """Read, normalise, deduplicate and lay down the corpus; or find that it has been done.

    `given` are its files as the fingerprint knows them; InputError where one of them changed while
    it was read. `begun` is what `look` gave, where the corpus was looked at before.
    """
    done = work.journal.done("pool", "all", verify=True)
    if STDIN in corpus:
        _refuse_other_text(work, done, corpus, config, progress)
    if done is None:
        batches = batches_of(corpus, config) if begun is None else begun
        _scan(work, corpus, given, config, chunked(batches, config, progress))
        done = work.journal.get("pool", "all")
        assert done is not None
    facts, files = done.facts, [file.path for file in done.files]
    chunks = [path for path in files if path.suffix == ".arrow"]
    counted = next(path for path in files if path.suffix == ".npy")
    by_path = {file.path: file for file in done.files}
    rejects = [path for path in files if path.suffix == ".parquet"]
    rejected: dict[str, int] = dict(facts["rejected"])  # type: ignore[call-overload]
    rejects_rows: list[int] = list(facts["rejects_rows"])  # type: ignore[call-overload]
    return Pool(
        tuple(chunks),
        int(str(facts["rows"])),
        int(str(facts["sentences"])),
        rejected,
        tuple((by_path[path], n) for path, n in zip(rejects, rejects_rows, strict=True)),
        _read_counts(counted, config),
    )


def _refuse_other_text(
    work: Workspace,
    done: Entry | None,
    corpus: Sequence[str],
    config: Config,
    progress: Progress,
) -> None:
    """RefusedError unless standard input gives the very sentences that were begun with.

    A file is known by its SHA-256 beforehand; of a pipe nothing is known until it has been read.
    """
    if done is None:
        same = all(entry.step != "chunk" for entry in work.journal)  # nothing was made of it yet
    else:
        pool = [file.path for file in done.files if file.path.suffix == ".arrow"]
        read_again = chunked(batches_of(corpus, config), config, progress)
        chunks = (chunk for chunk, _ in read_again if len(chunk))
        pairs = zip_longest(pool, chunks)
        same = all(path and chunk and chunk.equals(read_chunk(path)) for path, chunk in pairs)
    if not same:
        raise RefusedError(
            f"{work.root} was begun with another text from standard input: pipe the same text "
            "again, choose another folder, or --overwrite what is there"
        )


def drop(work: Workspace) -> None:
    """A finished dataset needs no pool; mending makes it anew."""
    shutil.rmtree(work.root / _FOLDER, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a first pass would find; nothing is written."""

    rows: int
    sentences: int
    rejected: dict[str, int]
    histogram: Histogram


def survey(corpus: Sequence[str], config: Config, progress: Progress) -> Survey:
    """Run the first pass without its outputs."""
    active(config)  # an unknown filter is refused before the corpus is read
    histogram = Histogram.of(config)
    rejected: Counter[str] = Counter()
    sentences = 0
    for chunk, bad in chunked(batches_of(corpus, config), config, progress):
        histogram.add(chunk.column("text"))
        rejected.update(by_reason(bad))
        sentences += len(chunk)
    if not sentences:
        raise empty_corpus(corpus, rejected)
    rows = sentences + rejected.total()
    return Survey(rows, sentences, dict(sorted(rejected.items())), histogram)


def _scan(
    work: Workspace,
    corpus: Sequence[str],
    given: Sequence[InputFile],
    config: Config,
    chunks: Iterator[tuple[pa.RecordBatch, pa.Table]],
) -> None:
    # Rows of another text, from a pipe that broke, must not be published with this one's.
    for path in (work.root / _REJECTS).glob("rows-*"):
        path.unlink()
    histogram = Histogram.of(config)
    rejected: Counter[str] = Counter()
    files: list[FileRecord] = []
    rejects_rows: list[int] = []
    rows = sentences = 0
    for k, (chunk, bad) in enumerate(chunks):
        histogram.add(chunk.column("text"))
        if len(chunk):
            files.append(_write_chunk(work, f"{_FOLDER}/{k:05d}.arrow", chunk))
        if len(bad):
            files.append(_write_rejects(work, f"{_REJECTS}/rows-{k:05d}.parquet", bad))
            rejects_rows.append(len(bad))
            rejected.update(by_reason(bad))
        rows += len(chunk) + len(bad)
        sentences += len(chunk)
    if not sentences:
        raise empty_corpus(corpus, rejected)
    _refuse_changed(corpus, given)
    files.append(_write_counts(work, histogram.counts))
    work.journal.record(
        "pool", "all", files,
        rows=rows, sentences=sentences, rejected=dict(sorted(rejected.items())),
        rejects_rows=rejects_rows,
    )  # fmt: skip


def _refuse_changed(corpus: Sequence[str], given: Sequence[InputFile]) -> None:
    """InputError unless the files are still those that the fingerprint and the manifest name.

    A file that is still being written, or fetched, would give rows that its SHA-256 does not vouch
    for.
    """
    found = inputs(corpus)
    if list(given) != found:
        names = {file.path for file in {*given} ^ {*found}}
        raise InputError(
            f"{', '.join(sorted(names)) or 'the corpus'} changed while it was read: wait until it "
            "is complete, and run the same command again"
        )


def _write_chunk(work: Workspace, name: str, chunk: pa.RecordBatch) -> FileRecord:
    def write(path: Path) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, SENTENCE, options=options) as writer,
        ):
            writer.write_batch(chunk)

    def check(path: Path) -> None:
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            assert reader.num_record_batches == 1

    return work.write(name, write, check)


def _write_rejects(work: Workspace, name: str, bad: pa.Table) -> FileRecord:
    return work.write(
        name,
        lambda path: _discard(write_pairs(path, [bad], REJECTED_ROW)),
        lambda path: check_whole(path, len(bad), REJECTED_ROW),
    )


def _discard(_: int) -> None:
    """A written file's row count, which the check establishes anyway."""


def _write_counts(work: Workspace, counts: npt.NDArray[np.int64]) -> FileRecord:
    """The cells that are not zero, as two rows: where in the flat histogram, and how much."""
    where = np.flatnonzero(counts)
    data = io.BytesIO()  # numpy's own writing to a file hides why it failed
    np.save(data, np.stack([where, counts.ravel()[where]]), allow_pickle=False)
    return work.write_bytes(f"{_FOLDER}/places.npy", data.getvalue())


def _read_counts(path: Path, config: Config) -> Histogram:
    histogram = Histogram.of(config)
    with naming(path):
        where, count = np.load(path, allow_pickle=False)
    histogram.counts.ravel()[where] = count
    return histogram
