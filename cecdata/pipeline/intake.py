"""The intake of a corpus: read, normalised, deduplicated, and cut into chunks of sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.config import Config
from cecdata.corpus.inputs import resolve
from cecdata.corpus.reading import FileReport, empty_corpus, read
from cecdata.corpus.rows import by_reason
from cecdata.corpus.sources import rows_known
from cecdata.pipeline.intake_stages import intake_stages
from cecdata.pipeline.stages import Batch, run
from cecdata.shards.schema import POOLED, REJECTED_ROW

Progress = Callable[[str, int, int | None], None]  # what, how many more, of how many in all
_HELD = 1 << 28  # most bytes of rejected rows in memory: an overlong row may have a megabyte


class Intake:
    """A corpus that is read once, as chunks of clean, distinct sentences.

    `files` has a report for each file that was read to its end, or to the limit. Stages that are
    not ordered run on `workers` threads.
    """

    def __init__(
        self, corpus: Sequence[str], config: Config, progress: Progress, workers: int = 1
    ) -> None:
        self.corpus, self.config, self.workers = corpus, config, workers
        self._progress = progress
        self.files: list[FileReport] = []
        self._batches = self._read()

    def look(self) -> None:
        """Read as far as the first sentence, before --overwrite removes anything.

        Raises InputError if there is no sentence, or if rows cannot be read as asked.
        """
        rejected: Counter[str] = Counter()
        held: list[Batch] = []
        held_bytes = 0
        for batch, bad in self._batches:
            held.append((batch, bad))
            held_bytes += bad.nbytes
            if len(batch):
                self._batches = chain(held, self._batches)
                return
            rejected.update(by_reason(bad))
            if held_bytes > _HELD:
                raise InputError(
                    f"{', '.join(self.corpus)}: no sentence among the first {rejected.total():,} "
                    "rows, so the output folder keeps what it holds: choose another folder, or "
                    "leave those rows out"
                )
        raise empty_corpus(self.corpus, rejected)

    def chunks(self) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
        """Yield `shard_sentences` sentences at a time, with the rows rejected on the way.

        The last chunk may hold fewer. A chunk that is yielded early because many rows were rejected
        holds no sentence.
        """
        size, total = self.config.shard_sentences, self._rows()
        held: list[pa.RecordBatch] = []
        bad: list[pa.RecordBatch] = []
        sentences = rejects = bad_bytes = 0
        for batch, rejected in self._batches:
            self._progress("read", len(batch) + len(rejected), total)
            held.append(batch)
            bad.append(rejected)
            sentences += len(batch)
            rejects += len(rejected)
            bad_bytes += rejected.nbytes
            if sentences < size and rejects < size and bad_bytes < _HELD:
                continue
            table, bad_table = pa.Table.from_batches(held), pa.Table.from_batches(bad)
            full = sentences - sentences % size
            for start in range(0, max(full, 1), size):
                yield _one(table.slice(start, min(size, full - start))), bad_table
                bad_table = bad_table.slice(0, 0)
            held, bad = table.slice(full).to_batches(), []
            sentences, rejects, bad_bytes = sentences - full, 0, 0
        if sentences or rejects:
            rest = pa.Table.from_batches(held, POOLED)
            yield _one(rest), pa.Table.from_batches(bad, REJECTED_ROW)

    def _rows(self) -> int | None:
        """Return the number of rows to read, or None if it is not known beforehand."""
        if self.config.split_sentences:  # a row may give several sentences
            return None
        rows = rows_known(resolve(self.corpus, self.config.format))
        limit = self.config.limit
        return rows if rows is None or limit is None else min(rows, limit)

    def _read(self) -> Iterator[Batch]:
        config = self.config
        rows = read(
            self.corpus,
            text_column=config.text_column,
            origin_column=config.origin_column,
            licence_column=config.licence_column,
            licence=config.licence,
            form=config.format,
            encoding=config.encoding,
            limit=config.limit,
            report=self.files.append,
        )
        batches = ((part.batch, part.rejected) for part in rows)
        for kept, rejected in run(intake_stages(config), batches, self.workers):
            yield kept.select(POOLED.names).cast(POOLED), rejected


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], POOLED)
