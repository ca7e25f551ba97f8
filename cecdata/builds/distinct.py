"""The second stage: a task for each bucket of ids; of equal sentences one is left, sorted by id.

What is kept is a pool of sentences in the order of their ids, with the counts that the rates are
calibrated on. A chunk, and so a shard, is a range of that order.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.blocks import Input
from cecdata.builds.engine import Step
from cecdata.builds.place import (
    PLACED,
    Done,
    Place,
    keep_distinct,
    reject_repeated,
    write_rows,
    write_sentences,
)
from cecdata.common.codec import Json
from cecdata.config import Config
from cecdata.corpus.reading import FileReport
from cecdata.perturbation.engine import Histogram
from cecdata.shards.manifest import File, Origin
from cecdata.shards.schema import POOLED, REJECTED_ROW, count_values


@dataclass(frozen=True)
class Distinct(Step):
    """The task of one bucket: it keeps the first of equal sentences, and counts them."""

    name = "distinct"
    source: Input
    parts: tuple[str, ...]  # of the first stage
    counts: bool  # whether rates are calibrated

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Gather a bucket out of all parts and write what is distinct in it."""
        return self.write_bucket(number, *self.select(number))

    def select(self, number: int) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
        """Return the distinct sentences of a bucket out of all parts, and the rejected rows."""
        kept, again = keep_distinct(self._gather_bucket(number))
        return kept, [reject_repeated(again, self.source.labels)] if len(again) else []

    def write_bucket(
        self, number: int, kept: pa.RecordBatch, bad: Sequence[pa.RecordBatch]
    ) -> tuple[list[File], dict[str, Json]]:
        """Write the sentences of a bucket, their counts and the rejected rows."""
        rejects = pa.Table.from_batches(bad, REJECTED_ROW)
        sentences = kept.select(POOLED.names).cast(POOLED)
        name, files = f"{number:05d}", []
        if len(kept):
            files.append(write_sentences(self.place, f"distinct/{name}.arrow", sentences))
            if self.counts:
                files.append(self._write_counts(name, sentences.column("text")))
        if len(rejects):
            again_name = f"rejects/rows-again-{name}.parquet"
            files.append(write_rows(self.place, again_name, rejects, REJECTED_ROW))
        return files, {
            "rejected": {**count_values(rejects["reason"])},
            "origins": _count_origins(kept),
        }

    def _gather_bucket(self, number: int) -> pa.RecordBatch:
        """Return the rows of a bucket, which are the batch of this number in each part."""
        batches = []
        for part in self.parts:
            with self.place.open_file(part) as file, pa.ipc.open_file(file) as reader:
                batches.append(reader.get_batch(number))
        return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], PLACED)

    def _write_counts(self, name: str, text: pa.Array) -> File:
        """Write the nonzero cells as two rows: the index in the flat histogram, and the count."""
        histogram = Histogram(self.config)
        histogram.add(text)
        cells = np.flatnonzero(histogram.counts)
        data = io.BytesIO()  # numpy hides why its own writing to a file failed
        np.save(data, np.stack([cells, histogram.counts.ravel()[cells]]), allow_pickle=False)
        return self.place.write(
            f".cecdata/distinct/{name}.npy", lambda path: path.write_bytes(data.getvalue())
        )


def _count_origins(kept: pa.RecordBatch) -> list[Json]:
    """Return [origin, licence, sentences, characters] of each origin and licence."""
    columns = [kept.column("origin"), kept.column("licence"), pc.utf8_length(kept.column("text"))]
    names = ["origin", "licence", "length"]
    grouped = pa.table(columns, names).group_by(names[:2], use_threads=False)
    counted = grouped.aggregate([("length", "count"), ("length", "sum")])
    return [list(row) for row in zip(*(c.to_pylist() for c in counted.columns), strict=True)]


@dataclass(frozen=True, slots=True)
class Pool:
    """The distinct sentences of a corpus, and what became of all its rows."""

    sentences: int
    rejected: dict[str, int]  # rows of the corpus by reason
    contaminated: dict[str, int]  # rows by the benchmark's match
    inputs: tuple[FileReport, ...]  # the files that were read
    origins: tuple[Origin, ...]
    buckets: tuple[File, ...]  # of sentences, in the order of ids
    rejects: tuple[File, ...]  # files of rejected rows
    counts: tuple[str, ...]  # files of histograms


def sum_up_pool(read: Sequence[Done], distinct: Sequence[Done]) -> Pool:
    """Return the pool that the markers of the first two stages describe."""
    rejected: Counter[str] = Counter()
    contaminated: Counter[str] = Counter()
    for done in (*read, *distinct):
        facts: dict[str, Any] = dict(done.facts)
        rejected.update(facts["rejected"])
        contaminated.update(facts.get("contaminated", {}))
    files = [file for done in (*read, *distinct) for file in done.files]
    buckets = tuple(f for done in distinct for f in done.files if f.path.endswith(".arrow"))
    return Pool(
        sentences=sum(bucket.rows for bucket in buckets),
        rejected=dict(sorted(rejected.items())),
        contaminated=dict(sorted(contaminated.items())),
        inputs=_gather_reports(read),
        origins=_sum_origins(distinct),
        buckets=buckets,
        rejects=tuple(file for file in files if file.path.startswith("rejects/")),
        counts=tuple(file.path for file in files if file.path.endswith(".npy")),
    )


def _gather_reports(read: Sequence[Done]) -> tuple[FileReport, ...]:
    """Return the reports of the files, in order; the parts of one are added up."""
    files: list[FileReport] = []
    for done in read:
        facts: Any = done.facts["inputs"]
        for fact in facts:
            report = FileReport(**{**fact, "rejected": Counter(fact["rejected"])})
            if report.continues:
                files[-1].rows += report.rows
                files[-1].rejected.update(report.rejected)
            else:
                files.append(report)
    return tuple(files)


def _sum_origins(distinct: Sequence[Done]) -> tuple[Origin, ...]:
    """Return the origins of all buckets with their sums; the most sentences first."""
    counts: dict[tuple[str, str | None], tuple[int, int]] = {}
    for done in distinct:
        facts: Any = done.facts["origins"]
        for origin, licence, sentences, characters in facts:
            before = counts.get((origin, licence), (0, 0))
            counts[origin, licence] = before[0] + sentences, before[1] + characters
    origins = (Origin(*key, *numbers) for key, numbers in counts.items())
    return tuple(sorted(origins, key=lambda o: (-o.sentences, o.origin, o.licence or "")))


def sum_histograms(place: Place, pool: Pool, config: Config) -> Histogram:
    """Return the sum of the histograms of all buckets."""
    histogram = Histogram(config)
    flat: npt.NDArray[np.int64] = histogram.counts.ravel()
    for name in pool.counts:
        with place.open_file(name) as file:
            cells, counts = np.load(io.BytesIO(file.read()), allow_pickle=False)
        flat[cells] += counts
    return histogram
