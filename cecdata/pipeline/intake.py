"""The corpus on its way in: read, normalised, without duplicates, in chunks of sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.config import Config
from cecdata.corpus.dedup import Dedup
from cecdata.corpus.normalise import Options, distinct, normalise
from cecdata.corpus.privacy import mask
from cecdata.corpus.reading import Rows, empty_corpus, read
from cecdata.corpus.sentences import split
from cecdata.corpus.sources import STDIN
from cecdata.shards.schema import REJECTED_ROW, SENTENCE

Progress = Callable[[str, int, int | None], None]  # what, how many more, of how many in all
Batches = Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]  # kept (SENTENCE), not (REJECTED_ROW)
_HELD = 1 << 28  # bytes of rejected rows: those that are too long may have a megabyte each


def look(corpus: Sequence[str], config: Config) -> Batches:
    """Return the corpus, read as far as its first sentence, before --overwrite removes anything.

    InputError where there is no sentence, or where rows cannot be read as asked.
    """
    rejected: Counter[str] = Counter()
    piped = STDIN in corpus
    held, held_bytes = [], 0  # of what comes only once; a file is read anew
    batches = batches_of(corpus, config)
    for batch, bad in batches:
        if piped:
            held.append((batch, bad))
            held_bytes += bad.nbytes
        if len(batch):
            return chain(held, batches) if piped else batches_of(corpus, config)
        rejected.update(by_reason(bad))
        if held_bytes > _HELD:
            raise InputError(
                f"standard input: no sentence among its first {rejected.total():,} rows, and what "
                "stands in the output folder stays: choose another one, or leave those rows out"
            )
    raise empty_corpus(corpus, rejected)


def batches_of(corpus: Sequence[str], config: Config) -> Batches:
    """Batch by batch: what is kept (schema SENTENCE) and what is not (REJECTED_ROW)."""
    options = Options(config.min_chars, config.max_chars)
    seen = Dedup()
    for rows in read(
        corpus,
        text_column=config.text_column,
        origin_column=config.origin_column,
        limit=config.limit,
    ):
        found = distinct(normalise(_prepare(rows, config), options), seen)
        rejected = pa.concat_batches([rows.rejected, found.rejected])
        yield found.batch.select(SENTENCE.names).cast(SENTENCE), rejected


def chunked(
    batches: Batches, config: Config, progress: Progress
) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
    """Exactly `shard_sentences` sentences at a time, with the rows rejected on the way.

    The last chunk may hold fewer; one that comes because so many rows were rejected holds none.
    """
    held, bad = pa.Table.from_batches([], SENTENCE), pa.Table.from_batches([], REJECTED_ROW)
    size = config.shard_sentences
    for batch, rejected in batches:
        progress("read", len(batch) + len(rejected), None)
        held = pa.concat_tables([held, pa.Table.from_batches([batch], SENTENCE)])
        bad = pa.concat_tables([bad, pa.Table.from_batches([rejected], REJECTED_ROW)])
        while len(held) >= size or len(bad) >= size or bad.nbytes >= _HELD:
            full = size if len(held) >= size else 0
            yield _one(held.slice(0, full)), bad
            held, bad = held.slice(full), bad.slice(0, 0)
    if len(held) or len(bad):
        yield _one(held), bad


def by_reason(bad: pa.Table | pa.RecordBatch) -> dict[str, int]:
    """How many rows were rejected for each reason."""
    found = bad.column("reason").value_counts()
    return dict(zip(*(found.field(name).to_pylist() for name in ("values", "counts")), strict=True))


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], SENTENCE)


def _prepare(rows: Rows, config: Config) -> pa.RecordBatch:
    batch = split(rows.batch) if config.split_sentences else rows.batch
    return mask(batch) if config.mask else batch
