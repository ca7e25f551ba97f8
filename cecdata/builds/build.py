"""★ The main path: read → distinct → corrupt, three maps over tasks, then the manifest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cecdata.builds.blocks import Input, list_paths_read, make_identity, open_input
from cecdata.builds.corrupt import Chunks, Corrupt, Publish
from cecdata.builds.distinct import Distinct, Pool, sum_histograms, sum_up_pool
from cecdata.builds.engine import Cluster, Step, Threads, start_engine
from cecdata.builds.near import DistinctNear
from cecdata.builds.output import open_output
from cecdata.builds.place import Done, Place
from cecdata.builds.publish import Finished, describe_run, publish_pairs, publish_pool, update_about
from cecdata.builds.read import Read, find_sentence
from cecdata.common.errors import InputError, UsageError
from cecdata.config import Config
from cecdata.corpus.reading import explain_empty_corpus
from cecdata.shards.manifest import About, Manifest


def build(
    corpus: Sequence[str],
    out: Path | str,
    config: Config,
    *,
    pool: bool = False,
    about: About | None = None,
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    command: str = "",
    named: str = "",
) -> Manifest:
    """Build the dataset at `out`, or resume it; check a finished one and leave its rows unchanged.

    `out` is a folder, or the URI of a place in a store. With `pool`, it gets the sentences of the
    first two stages; a build of that pool gives the rows of a build of the corpus. `about` is what
    the publisher states in the card, by default what a finished dataset has. The engine, `local` or
    `ray`, runs at most `workers` tasks at once; the bytes depend on neither. Records and messages
    call the corpus `named`, if that is given. Raises InputError, RefusedError, DiskFullError.
    """
    started = time.monotonic()
    with open_input(corpus, config, named) as source:
        if overwrite:  # before anything is removed
            find_sentence(source, config)
        identity = make_identity(source, config, pool=pool)
        reads = list_paths_read(source.inputs, config)
        with (
            open_output(out, identity, overwrite=overwrite, reads=reads) as output,
            start_engine(engine, workers) as runner,
        ):
            finished = output.read_finished()
            if finished is not None:
                output.drop_working_files()
                return update_about(output, finished, about)
            run = Run(output.place, output.build, runner)
            try:
                sentences = run.gather_sentences(source, config, counts=not pool)
                histogram = None if pool else sum_histograms(run.place, sentences, config)
            except (InputError, UsageError):
                output.forget()
                raise
            stage: Chunks = Publish(run.place, run.build, config, sentences)
            if histogram is not None:
                stage = Corrupt(run.place, run.build, config, sentences, histogram.rates())
            chunks = run.run_stage(stage, stage.count)
            facts = describe_run(started, workers, command)
            result = Finished(source, sentences, chunks, facts, about)
            if histogram is None:
                return publish_pool(output, result, config)
            return publish_pairs(output, result, histogram)


@dataclass(frozen=True, slots=True)
class Run:
    """The stages of one build, on one engine."""

    place: Place
    build: str
    engine: Threads | Cluster

    def run_stage(self, stage: Step, tasks: int) -> list[Done]:
        """Run all tasks of a stage, and return their markers by number."""
        done = self.engine.map(stage, range(tasks))
        return sorted(done, key=lambda marker: int(marker.task.split("/")[1]))

    def gather_sentences(self, source: Input, config: Config, *, counts: bool) -> Pool:
        """Run the first two stages, and return the distinct sentences of the corpus."""
        first = Read(self.place, self.build, config, source)
        read = self.run_stage(first, len(source.blocks))
        source.refuse_changed()
        parts = tuple(f.path for done in read for f in done.files if f.path.endswith(".arrow"))
        kind, tasks = (DistinctNear, 1) if config.near_duplicates else (Distinct, 1 << source.bits)
        second = kind(self.place, self.build, config, source, parts, counts)
        distinct = self.run_stage(second, tasks)
        pool = sum_up_pool(read, distinct)
        if not pool.sentences:
            damage = [record.damage for record in pool.inputs if record.damage]
            raise explain_empty_corpus(source.names, pool.rejected, damage)
        return pool
