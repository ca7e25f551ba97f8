"""The first stage: a task for each block of input; rows become sentences, in parts sorted by id.

A block is a large file, some row groups of one, or many small files. Its rows are split, masked,
normalised, filtered and compared with benchmarks. A part holds some megabytes of sentences, one
batch for each bucket: a bucket has the ids that begin with the same bits. Of equal sentences in a
part one is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cecdata.builds.blocks import Block, Input
from cecdata.builds.engine import Step, work_ahead
from cecdata.builds.place import PLACED, keep_distinct, reject_repeated, write_batches, write_rows
from cecdata.common.codec import Json, encode
from cecdata.common.progress import advance_bar
from cecdata.common.store import fetch_copies, is_remote
from cecdata.config import Config
from cecdata.contamination.benchmarks import count_by_benchmark, decontaminate, load_index
from cecdata.contamination.index import Index
from cecdata.corpus.normalise import Normalised, normalise
from cecdata.corpus.privacy import mask_column
from cecdata.corpus.quality import reject_failing
from cecdata.corpus.reading import FileReport, explain_empty_corpus, read_sources
from cecdata.corpus.sentences import split_texts
from cecdata.corpus.sources import Rows
from cecdata.shards.manifest import File
from cecdata.shards.schema import REJECTED_ROW, count_values

_PART = 1 << 25  # bytes of sentences, or of rejected rows, in a part
_RANGES = 4  # first bits of an id, which the ids of a range have in common


@dataclass(frozen=True)
class Read(Step):
    """The task of one block: it writes parts of sentences and of rejected rows."""

    name = "read"
    source: Input

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Read, clean and sort the rows of a block."""
        block, reports = self.source.blocks[number], list[FileReport]()
        batches = work_ahead(
            _make_cleaner(self.config),
            _read_block(block, self.config, reports.append),
            self.threads,
        )
        files: list[File] = []
        rejected: Counter[str] = Counter()
        contaminated: Counter[str] = Counter()
        write = partial(self._write_part, number)
        for made, bad in work_ahead(write, enumerate(self._fill_parts(batches)), self.threads):
            files += made
            rejected.update(count_values(bad["reason"]))
            contaminated.update(count_by_benchmark(bad))
        facts: dict[str, Json] = {
            "rejected": dict(rejected),
            "contaminated": dict(contaminated),
            "inputs": [encode(report) for report in reports],
        }
        return files, facts

    def _fill_parts(self, batches: Iterator[Normalised]) -> Iterator[list[Normalised]]:
        """Yield the batches of each part: those with `_PART` bytes of either kind of rows."""
        waiting: list[Normalised] = []
        good_bytes = bad_bytes = 0
        for clean in batches:
            advance_bar("read", len(clean.batch) + len(clean.rejected), None)
            waiting.append(clean)
            good_bytes += clean.batch.nbytes
            bad_bytes += clean.rejected.nbytes
            del clean  # `_write_part` frees the batches one by one
            if max(good_bytes, bad_bytes) >= _PART:
                yield waiting
                waiting, good_bytes, bad_bytes = [], 0, 0
        if waiting:
            yield waiting

    def _write_part(
        self, number: int, numbered: tuple[int, list[Normalised]]
    ) -> tuple[list[File], pa.Table]:
        """Write one part, its number in the block and its batches: sentences, and rejected rows."""
        part, waiting = numbered
        bad = pa.Table.from_batches([clean.rejected for clean in waiting], REJECTED_ROW)
        runs: list[pa.RecordBatch] = []
        while waiting:  # a part is in memory only once
            run = _encode_files(waiting.pop(0).batch, self.source.labels)
            by_id = np.argsort(np.asarray(run.column("id")), kind="stable")
            runs.append(run.take(pa.array(by_id)))
        repeated: list[pa.RecordBatch] = []
        name, files = f"{number:05d}-{part:04d}", []
        if any(map(len, runs)):
            batches = _merge_runs(runs, self.source.bits, repeated.append)
            files.append(write_batches(self.place, f"read/{name}.arrow", batches, PLACED))
        again = [reject_repeated(rows, self.source.labels) for rows in repeated]
        bad = pa.concat_tables([bad, pa.Table.from_batches(again, REJECTED_ROW)])
        if len(bad):
            rejects = f"rejects/rows-{name}.parquet"
            files.append(write_rows(self.place, rejects, bad, REJECTED_ROW))
        return files, bad


def find_sentence(source: Input, config: Config) -> None:
    """Clean rows until there is a sentence.

    Raises InputError if there is none, or if rows cannot be read as asked.
    """
    rejected: Counter[str] = Counter()
    reports: list[FileReport] = []
    cleaner = _make_cleaner(config)
    for block in source.blocks:
        for rows in _read_block(block, config, reports.append):
            clean = cleaner(rows)
            if len(clean.batch):
                return
            rejected.update(count_values(clean.rejected["reason"]))
    raise explain_empty_corpus(
        source.names, rejected, [report.damage for report in reports if report.damage]
    )


def _read_block(
    block: Block, config: Config, report: Callable[[FileReport], object]
) -> Iterator[Rows]:
    """Yield the rows of a block, fetching a file of a store that this machine lacks."""
    sources = [
        replace(source, path=fetch_copies(source.label)[""])
        if source.path and not source.path.exists() and is_remote(source.label)
        else source
        for source in block.sources
    ]
    return read_sources(sources, config.text_column, limit=block.limit, report=report)


def _make_cleaner(config: Config) -> Callable[[Rows], Normalised]:
    known = load_index(config.decontaminate) if config.decontaminate else None
    return partial(clean_rows, config=config, known=known)


def clean_rows(rows: Rows, config: Config, known: Index | None) -> Normalised:
    """Return the sentences of these rows, and the rows that are none, each with its reason.

    Sentences that `known` has are none.
    """
    whole = split_texts(rows.batch) if config.split_sentences else rows.batch
    masks = mask_column if config.mask else None
    normal = normalise(whole, config.min_chars, config.max_chars, masks)
    clean = reject_failing(normal, config.quality)
    if known is not None:
        clean = decontaminate(clean, known)
    if not len(rows.rejected):
        return clean
    return Normalised(clean.batch, pa.concat_batches([rows.rejected, clean.rejected]))


def _encode_files(batch: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return a batch with the numbers of its files among the labels in place of their names."""
    coded = batch.column("file").dictionary_encode()
    numbers = np.searchsorted(labels, coded.dictionary.to_pylist()) if len(labels) > 1 else [0]
    codes = np.asarray(numbers, np.int32)[np.asarray(coded.indices)]
    columns = [pa.array(codes) if n == "file" else batch.column(n) for n in PLACED.names]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)


def _merge_runs(
    runs: Sequence[pa.RecordBatch], bits: int, repeated: Callable[[pa.RecordBatch], object]
) -> Iterator[pa.RecordBatch]:
    """Yield a batch for each bucket, some of them empty, from runs that are sorted by id.

    A bucket has the ids that begin with the same `bits` bits. A range of buckets is copied at a
    time. Rows whose sentence is there already go to `repeated`.
    """
    range_bits = min(bits, _RANGES)
    pieces = [_cut_buckets(run, range_bits, range(1 << range_bits)) for run in runs]
    for number, pieces_of_range in enumerate(zip(*pieces, strict=True)):
        distinct, again = keep_distinct(pa.concat_batches(pieces_of_range))
        if len(again):  # even an empty slice would keep the whole range in memory
            repeated(again)
        per_range = 1 << (bits - range_bits)
        buckets = range(number * per_range, (number + 1) * per_range)
        yield from _cut_buckets(distinct, bits, buckets)


def _cut_buckets(rows: pa.RecordBatch, bits: int, buckets: range) -> list[pa.RecordBatch]:
    """Cut rows that are sorted by id, and that lie in these buckets alone, into the buckets.

    A bucket is the number that the first `bits` bits of its ids are.
    """
    starts = [(number << 64 - bits) - 2**63 for number in buckets]  # ids are signed
    cuts = np.searchsorted(np.asarray(rows.column("id")), np.array(starts, np.int64))
    return [rows.slice(a, b - a) for a, b in pairwise([*cuts.tolist(), len(rows)])]
