"""A pool as a dataset of its own: distinct sentences in Parquet, a manifest and a card."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cecdata import __version__
from cecdata.common.durable import FileRecord, Workspace
from cecdata.config import Config
from cecdata.corpus.inputs import InputFile, inputs
from cecdata.corpus.reading import empty_corpus
from cecdata.corpus.rows import by_reason
from cecdata.pipeline import assemble
from cecdata.pipeline.chunks import REJECTS, STAGED
from cecdata.pipeline.identity import finished_manifest, pool_identity, refuse_other_stdin, versions
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.pool import Chunk, refuse_changed, write_rejects
from cecdata.pipeline.stages import ahead
from cecdata.shards.card import CARD, card
from cecdata.shards.manifest import POOL, Counts, File, Manifest, Origin
from cecdata.shards.schema import POOLED
from cecdata.shards.writer import check_whole, write_pairs


def make_pool(
    corpus: Sequence[str],
    out: Path,
    config: Config,
    *,
    workers: int = 1,
    overwrite: bool = False,
    command: str = "",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Write the pool of a corpus to `out`; check a finished one and leave it unchanged.

    `cecdata build` of the pool gives the rows of a build of the corpus with the same settings.
    `workers` threads share the work; no byte depends on their number. An interrupted pool starts
    over. Raises InputError, RefusedError, DiskFullError.
    """
    started = time.monotonic()
    given = inputs(corpus, config.format)
    intake = Intake(corpus, config, progress, workers)
    if overwrite:
        intake.look()
    identity = {"dataset": POOL, **pool_identity(given, config)}
    reads = [file.path for file in given]
    with Workspace(out, identity, overwrite=overwrite, reads=reads) as work:
        refuse_other_stdin(work, corpus)
        finished = finished_manifest(work)
        if finished is not None:
            return finished
        recorded = _write(work, intake, given)
        for staged, final in ((STAGED, "data"), (REJECTS, "rejects")):
            if (work.root / staged).is_dir():
                work.publish(staged, final)
        assemble.write_run(work, started, workers, command)
        documents = [
            work.write_text(CARD, card(recorded)),
        ]
        return assemble.close(work, recorded, documents, config)


def _write(work: Workspace, intake: Intake, given: Sequence[InputFile]) -> Manifest:
    """Write the shards and the rejected rows of a corpus, and return the manifest."""
    for folder in (STAGED, REJECTS):  # remove the files of an interrupted run
        for path in (work.root / folder).glob("*.parquet"):
            path.unlink()
    shards: list[File] = []
    rejects: list[File] = []
    rejected: Counter[str] = Counter()
    origins = Origins()

    def write(numbered: tuple[int, Chunk]) -> tuple[Chunk, File | None, File | None]:
        (number, (chunk, bad)), shard, refused = numbered, None, None
        if len(chunk):
            file = _write_shard(work, f"{STAGED}/pool-{number:05d}.parquet", chunk)
            shard = assemble.final(file, len(chunk))
        if len(bad):
            file = write_rejects(work, f"{REJECTS}/rows-{number:05d}.parquet", bad)
            refused = assemble.final(file, len(bad))
        return (chunk, bad), shard, refused

    for (chunk, bad), shard, refused in ahead(write, enumerate(intake.chunks()), intake.workers):
        origins.add(chunk)
        rejected.update(by_reason(bad))
        shards += [shard] if shard else []
        rejects += [refused] if refused else []
    kept = sum(file.rows for file in shards)
    if not kept:
        raise empty_corpus(intake.corpus, rejected)
    refuse_changed(intake, given)
    pairs = zip_longest(given, intake.files)
    return Manifest(
        version=__version__,
        configuration=intake.config.intake(),
        versions=versions(),
        tables={},
        inputs=tuple(assemble.input_file(file, read) for file, read in pairs),
        outputs={"train": tuple(shards)},
        rows=Counts(kept + rejected.total(), kept, dict(sorted(rejected.items()))),
        pairs=Counts(0, 0),
        rejects=tuple(rejects),
        origins=origins.listed(),
        extra={"kind": POOL},
    )


class Origins:
    """Numbers of sentences and of characters by origin and licence."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str | None], tuple[int, int]] = {}

    def add(self, chunk: pa.RecordBatch) -> None:
        """Count a chunk of the schema POOLED."""
        lengths = pc.utf8_length(chunk.column("text"))
        columns = [chunk.column("origin"), chunk.column("licence"), lengths]
        names = ["origin", "licence", "length"]
        grouped = pa.table(columns, names).group_by(names[:2], use_threads=False)
        for row in grouped.aggregate([("length", "count"), ("length", "sum")]).to_pylist():
            key = row["origin"], row["licence"]
            sentences, characters = self._counts.get(key, (0, 0))
            added = sentences + row["length_count"], characters + row["length_sum"]
            self._counts[key] = added

    def listed(self) -> tuple[Origin, ...]:
        """Return the counts, the most sentences first."""
        ranked = sorted(self._counts.items(), key=lambda x: (-x[1][0], x[0][0], x[0][1] or ""))
        return tuple(Origin(*key, *counts) for key, counts in ranked)


def _write_shard(work: Workspace, name: str, chunk: pa.RecordBatch) -> FileRecord:
    table = pa.Table.from_batches([chunk])

    def write(path: Path) -> None:
        write_pairs(path, [table], POOLED)

    return work.write(name, write, lambda path: check_whole(path, len(chunk), POOLED))
